//! The file of a recording that is being made.
//!
//! What could not be written whole is cut off again, so that the file is readable at any time. How many events are missing is written with
//! the next ones. Where a disk is full to the end, the last piece of the file gives its place to the count and the mark of the end: a file
//! that does not say what it misses would be taken for a whole one.

use std::collections::VecDeque;
use std::io;

use super::recording_file::RecordingFile;
use super::untold_events::UntoldEvents;
use crate::file::RecordingWriter;
use crate::record::{DropCause, DroppedRecord, EndRecord, TraceEvent};

/// Pieces of the file that are remembered.
const REMEMBERED_PIECES: usize = 32;

/// The file.
pub(super) struct Output {
    file: Box<dyn RecordingFile>,
    /// Bytes that are written whole.
    whole: u64,
    /// The last pieces that were written, without the first one of the file, which says what is recorded.
    pieces: VecDeque<Piece>,
    is_begun: bool,
    /// Blocks are made here before they are written.
    blocks: RecordingWriter<Vec<u8>>,
    untold: UntoldEvents,
    /// The time of the last event that has one.
    latest_ns: u64,
    /// Whether the mark of the end is the last event.
    is_ended: bool,
}

/// What one write added to the file.
struct Piece {
    begin: u64,
    events: u64,
    told: Vec<DroppedRecord>,
}

/// What became of the mark of the end.
pub(super) struct EndOutcome {
    /// Events that the file had, and that gave their place to it.
    pub(super) given_up: u64,
    /// What the disk said, if the mark is not in the file.
    pub(super) result: io::Result<()>,
}

impl Output {
    pub(super) fn begin(mut file: Box<dyn RecordingFile>) -> io::Result<Self> {
        let mut blocks = RecordingWriter::new(Vec::new())?;
        let whole = blocks.get_mut().len() as u64;
        file.check_room(whole)?;
        file.write_all(blocks.get_mut())?;
        blocks.get_mut().clear();
        Ok(Self {
            file,
            whole,
            pieces: VecDeque::new(),
            is_begun: false,
            blocks,
            untold: UntoldEvents::default(),
            latest_ns: 0,
            is_ended: false,
        })
    }

    /// Appends events, of which some before them are missing because they came too fast.
    pub(super) fn append(&mut self, events: &[TraceEvent<'static>], too_fast: u64) -> io::Result<()> {
        self.latest_ns = events.iter().rev().find_map(TraceEvent::time_ns).unwrap_or(self.latest_ns);
        if too_fast > 0 {
            let time_ns = self.latest_ns;
            self.untold.add(DroppedRecord { events: too_fast, time_ns, ..DroppedRecord::default() });
        }
        if events.is_empty() && self.untold.is_empty() {
            return Ok(());
        }
        let written = self.write(events, events.len() as u64);
        match &written {
            Ok(()) => self.is_ended = false,
            Err(error) => self.refused(error, events.len() as u64),
        }
        written
    }

    /// Everything that there was to write in this round was appended or refused.
    pub(super) fn end_round(&mut self) {
        self.untold.settle();
    }

    /// Appends the mark of the end, at a time or at that of the last event.
    pub(super) fn append_end(&mut self, time_ns: Option<u64>) -> EndOutcome {
        let end = [TraceEvent::End(EndRecord { time_ns: time_ns.unwrap_or(self.latest_ns) })];
        let mut given_up = 0;
        let mut result = self.write(&end, 0);
        if let Err(error) = &result
            && cause(error) != DropCause::DiskRefused
        {
            // Once: a disk on which others take what is given up would take the whole file.
            if let Some(events) = self.give_up(error) {
                given_up = events;
                result = self.write(&end, 0);
            }
        }
        self.is_ended = result.is_ok();
        EndOutcome { given_up, result }
    }

    /// Whether the file is still there to be written.
    pub(super) fn check_kept(&mut self) -> io::Result<()> {
        self.file.check_kept()
    }

    /// Whether the mark of the end is the last event.
    pub(super) fn is_ended(&self) -> bool {
        self.is_ended
    }

    /// Cuts off what gives enough room for the mark of the end, and counts the events of that as missing; how many these are, or none if nothing
    /// was cut off.
    fn give_up(&mut self, error: &io::Error) -> Option<u64> {
        // The mark and the counts have less: a head, and a few numbers for each.
        const WANTED_BYTES: u64 = 256;
        let (mut begin, mut events, mut told) = (self.whole, 0, Vec::new());
        while self.whole - begin < WANTED_BYTES
            && let Some(piece) = self.pieces.pop_back()
        {
            begin = piece.begin;
            events += piece.events;
            told.extend(piece.told);
        }
        if begin == self.whole || self.file.cut(begin).is_err() {
            return None;
        }
        self.refused(error, events);
        told.into_iter().for_each(|record| self.untold.add_earlier(record));
        self.whole = begin;
        Some(events)
    }

    /// The disk took none of so many events.
    fn refused(&mut self, error: &io::Error, events: u64) {
        if events == 0 {
            return;
        }
        let (cause, at_byte, time_ns) = (cause(error), self.whole, self.latest_ns);
        self.untold.add(DroppedRecord { events, cause, at_byte, time_ns });
    }

    /// Writes what is untold and then events, all or nothing.
    fn write(&mut self, events: &[TraceEvent<'static>], counted: u64) -> io::Result<()> {
        for record in self.untold.records() {
            self.blocks.push(&TraceEvent::Dropped(*record))?;
        }
        events.iter().try_for_each(|event| self.blocks.push(event))?;
        self.blocks.write_block()?;
        let bytes = self.blocks.get_mut();
        let end = self.whole + bytes.len() as u64;
        let written = self.file.check_room(end).and_then(|()| {
            self.file.write_all(bytes).inspect_err(|_| {
                // If that fails too, a reader finds a block that is cut or damaged, and everything before it.
                let _ = self.file.cut(self.whole);
            })
        });
        bytes.clear();
        written?;
        let told = self.untold.take();
        if self.is_begun {
            self.pieces.push_back(Piece { begin: self.whole, events: counted, told });
            if self.pieces.len() > REMEMBERED_PIECES {
                self.pieces.pop_front();
            }
        }
        (self.is_begun, self.whole) = (true, end);
        Ok(())
    }
}

/// Why a disk refused what it was given.
fn cause(error: &io::Error) -> DropCause {
    match error.kind() {
        io::ErrorKind::StorageFull => DropCause::DiskFull,
        io::ErrorKind::QuotaExceeded => DropCause::QuotaExceeded,
        io::ErrorKind::FileTooLarge => DropCause::FileTooLarge,
        _ => DropCause::DiskRefused,
    }
}
