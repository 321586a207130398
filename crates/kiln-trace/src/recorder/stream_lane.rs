//! What a stream did and was not written yet.

use std::panic::Location;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use kiln_sync::BiasedLock;

use super::known_name::KnownLine;
use super::recording_thread::RecordingThread;
use super::slot_ring::{RingWriter, SLOT_WORDS, SlotRing};
use super::stream_note::{self, CollectiveNote, SubmissionNote, WaitNote};
use super::tick_scale::TickScale;
use crate::record::{TraceEvent, TraceStream};

/// The notes of one stream that wait to be written, a limited number.
///
/// Noting takes no memory from the heap, no clock and no lock that the thread that writes the file ever has. Threads that submit to the same
/// stream share one; the thread that made the lane takes that without a locked instruction for as long as no other comes.
// In this order: what a note looks at stands first.
#[repr(C)]
pub struct StreamLane {
    writer: BiasedLock<LaneWriter>,
    ring: SlotRing,
    stream: TraceStream,
    thread: Weak<RecordingThread>,
    scale: Arc<dyn TickScale>,
    /// Dropped notes that were told; the thread alone writes it.
    told: AtomicU64,
}

/// What the writer of a lane knows.
#[derive(Default)]
struct LaneWriter {
    ring: RingWriter,
    /// The line of the last note and its number: most launches of a stream come from few lines, one after the other.
    line: (Option<&'static Location<'static>>, KnownLine),
}

impl LaneWriter {
    /// The number of a line.
    #[inline(always)]
    fn line(&mut self, line: Option<&'static Location<'static>>) -> KnownLine {
        let Some(line) = line else { return KnownLine::default() };
        match self.line {
            (Some(last), number) if std::ptr::eq(last, line) => number,
            _ => {
                self.line = (Some(line), KnownLine::of(line));
                self.line.1
            }
        }
    }
}

impl StreamLane {
    pub(super) fn new(
        stream: TraceStream,
        scale: Arc<dyn TickScale>,
        room: usize,
        thread: Weak<RecordingThread>,
    ) -> Self {
        let (writer, ring) = (BiasedLock::new(LaneWriter::default()), SlotRing::new(room));
        Self { writer, ring, stream, thread, scale, told: AtomicU64::new(0) }
    }

    /// Work was submitted to the stream.
    #[inline(always)]
    pub fn submitted(&self, note: &SubmissionNote) {
        let mut writer = self.writer.lock();
        let line = writer.line(note.line);
        let wakes = match note.slots(line) {
            (first, None) => self.ring.push(&mut writer.ring, first),
            (first, Some(second)) => self.ring.push_two(&mut writer.ring, [first, second]),
        };
        drop(writer);
        if wakes {
            self.wake();
        }
    }

    /// Work of the stream waits for work of another one.
    pub fn waits(&self, note: &WaitNote) {
        self.push(note.slot());
    }

    /// Work of the stream is a collective.
    pub fn collective(&self, note: &CollectiveNote) {
        self.push(note.slot());
    }

    fn push(&self, slot: [u64; SLOT_WORDS]) {
        let wakes = self.ring.push(&mut self.writer.lock().ring, slot);
        if wakes {
            self.wake();
        }
    }

    #[cold]
    #[inline(never)]
    fn wake(&self) {
        if let Some(thread) = self.thread.upgrade() {
            thread.wake();
        }
    }

    /// Adds the events of all notes; how many were dropped since the last time. Only the thread that writes calls this.
    pub(super) fn take(&self, events: &mut Vec<TraceEvent<'static>>) -> u64 {
        self.scale.set();
        let dropped = self.ring.drain(|slot, next| {
            events.extend(stream_note::event(&slot, next, self.stream, &*self.scale));
        });
        dropped.saturating_sub(self.told.swap(dropped, Ordering::Relaxed))
    }
}
