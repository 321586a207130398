//! Waits of streams whose work is not written yet.
//!
//! A wait is noted when it is queued, and its work when it is known when that ran. The work queued before it may come to the file later than the wait, so
//! the thread that writes holds waits back: in the file each stands behind the work before it, as readers expect that take a wait for one of the
//! work that comes next.

use std::collections::{BTreeMap, VecDeque};

use crate::record::{StreamWaitRecord, TraceEvent, TraceStream};

/// So many are held; more are written before their turn.
const MAX_HELD: usize = 1 << 16;

/// The waits that are held, by the stream that waits.
#[derive(Default)]
pub(super) struct HeldWaits {
    streams: BTreeMap<TraceStream, VecDeque<StreamWaitRecord<'static>>>,
    held: usize,
    ordered: Vec<TraceEvent<'static>>,
}

impl HeldWaits {
    /// Events as they are written: waits directly before their work, and those whose work is not among them later.
    pub(super) fn order(&mut self, events: &[TraceEvent<'static>]) -> &[TraceEvent<'static>] {
        self.ordered.clear();
        for event in events {
            match event {
                TraceEvent::StreamWait(wait) if self.held < MAX_HELD => {
                    self.hold(*wait);
                    continue;
                }
                TraceEvent::Submission(work) if self.held > 0 => {
                    self.release(work.stamp.stream, work.stamp.number);
                }
                _ => {}
            }
            self.ordered.push(*event);
        }
        &self.ordered
    }

    /// What is still held: the work did not come.
    pub(super) fn rest(&mut self) -> Vec<TraceEvent<'static>> {
        self.held = 0;
        std::mem::take(&mut self.streams).into_values().flatten().map(TraceEvent::StreamWait).collect()
    }

    fn hold(&mut self, wait: StreamWaitRecord<'static>) {
        let waits = self.streams.entry(wait.waiter.stream).or_default();
        // Where two threads submit to the stream, neighbours may be swapped.
        let behind = waits.iter().rev().take_while(|held| held.waiter.number > wait.waiter.number).count();
        waits.insert(waits.len() - behind, wait);
        self.held += 1;
    }

    /// The waits of a stream for work up to a number are next.
    fn release(&mut self, stream: TraceStream, number: u64) {
        let Some(waits) = self.streams.get_mut(&stream) else { return };
        while waits.front().is_some_and(|wait| wait.waiter.number <= number) {
            self.ordered.extend(waits.pop_front().map(TraceEvent::StreamWait));
            self.held -= 1;
        }
        if waits.is_empty() {
            self.streams.remove(&stream);
        }
    }
}
