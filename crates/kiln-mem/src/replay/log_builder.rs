//! Putting a log together, call by call, and refusing what cannot have happened.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashMap};

use super::allocation_log::{AllocationLog, LogAction, LogEvent, LogOptions};
use super::log_error::LogProblem;
use crate::trace::TraceAction;

/// A log in the making.
pub(super) struct LogBuilder {
    options: LogOptions,
    log: AllocationLog,
    threads: HashMap<String, u32>,
    streams: HashMap<String, u32>,
    /// Live blocks that have bytes, by address.
    live: BTreeMap<u64, Live>,
    /// Live blocks of no bytes, which may share an address with each other and with anything.
    empty: HashMap<u64, Vec<u32>>,
    live_bytes: u64,
}

struct Live {
    block: u32,
    bytes: u64,
}

/// A call as it was written down.
#[derive(Clone, Copy)]
pub(super) struct Raw {
    pub(super) pointer: u64,
    pub(super) bytes: u64,
    pub(super) action: TraceAction,
}

impl LogBuilder {
    pub(super) fn new(options: LogOptions) -> Self {
        Self {
            options,
            log: AllocationLog::default(),
            threads: HashMap::new(),
            streams: HashMap::new(),
            live: BTreeMap::new(),
            empty: HashMap::new(),
            live_bytes: 0,
        }
    }

    /// Adds a call. Threads and streams are whatever the log calls them.
    pub(super) fn add(&mut self, thread: &str, stream: &str, raw: Raw) -> Result<(), LogProblem> {
        if self.options.partial && raw.action == TraceAction::Allocate && raw.bytes > 0 {
            self.end_unseen(thread, stream, raw);
        }
        let action = match raw.action {
            TraceAction::Allocate => Some(self.allocate(raw)?),
            TraceAction::Free => self.free(raw)?,
            TraceAction::Fail => Some(LogAction::Failed { bytes: raw.bytes }),
        };
        let Some(action) = action else {
            self.log.orphans += 1;
            return Ok(());
        };
        self.push(thread, stream, action);
        Ok(())
    }

    fn push(&mut self, thread: &str, stream: &str, action: LogAction) {
        let (thread, stream) = (number(&mut self.threads, thread), number(&mut self.streams, stream));
        self.log.events.push(LogEvent { thread, stream, action });
    }

    /// Frees what is live at addresses that are handed out again: that it was freed is not in the log.
    fn end_unseen(&mut self, thread: &str, stream: &str, raw: Raw) {
        let end = raw.pointer.saturating_add(raw.bytes);
        while let Some((at, Live { block, bytes })) = self.live.range(..end).next_back()
            && at.saturating_add(*bytes) > raw.pointer
        {
            let (at, block, bytes) = (*at, *block, *bytes);
            self.live.remove(&at);
            self.live_bytes -= bytes;
            self.push(thread, stream, LogAction::Free { block });
        }
    }

    pub(super) fn finish(mut self) -> AllocationLog {
        self.log.threads = self.threads.len() as u32;
        self.log.streams = self.streams.len() as u32;
        self.log
    }

    fn allocate(&mut self, Raw { pointer, bytes, .. }: Raw) -> Result<LogAction, LogProblem> {
        let block = self.log.blocks;
        let blocks = block.checked_add(1).ok_or(LogProblem::TooMuch)?;
        if bytes == 0 {
            self.empty.entry(pointer).or_default().push(block);
        } else {
            let live_bytes = self.live_bytes.checked_add(bytes).ok_or(LogProblem::TooMuch)?;
            match self.live.entry(pointer) {
                Entry::Occupied(_) => return Err(LogProblem::Taken(pointer)),
                Entry::Vacant(vacant) => vacant.insert(Live { block, bytes }),
            };
            self.live_bytes = live_bytes;
            self.log.peak_bytes = self.log.peak_bytes.max(live_bytes);
        }
        self.log.blocks = blocks;
        Ok(LogAction::Allocate { block, bytes })
    }

    /// None for the end of a block whose beginning is not in the log, where that is allowed.
    fn free(&mut self, Raw { pointer, bytes, .. }: Raw) -> Result<Option<LogAction>, LogProblem> {
        if bytes == 0 {
            if let Some(block) = self.empty.get_mut(&pointer).and_then(Vec::pop) {
                return Ok(Some(LogAction::Free { block }));
            }
        } else if let Some(live) = self.live.get(&pointer) {
            // A part of the log that is missing may have freed this block and allocated the one of another size.
            if live.bytes != bytes && !self.options.partial {
                return Err(LogProblem::OtherSize { allocated: live.bytes, freed: bytes });
            }
            let Live { block, bytes } = *live;
            self.live.remove(&pointer);
            self.live_bytes -= bytes;
            return Ok(Some(LogAction::Free { block }));
        }
        if self.options.partial { Ok(None) } else { Err(LogProblem::NotLive(pointer)) }
    }
}

/// A small number for a name, given out in the order in which names come up.
fn number(names: &mut HashMap<String, u32>, name: &str) -> u32 {
    if let Some(number) = names.get(name) {
        return *number;
    }
    let next = names.len() as u32;
    names.insert(name.to_owned(), next);
    next
}
