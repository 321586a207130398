//! Events that wait to be written.

use std::sync::{Mutex, Weak};

use super::locked;
use super::recording_thread::RecordingThread;
use crate::record::TraceEvent;

/// The events of one stream that wait to be written, a limited number.
pub struct RecordingLane {
    ring: Mutex<Ring>,
    thread: Weak<RecordingThread>,
}

struct Ring {
    /// Never longer than its room, so that it never grows.
    events: Vec<TraceEvent<'static>>,
    room: usize,
    dropped: u64,
}

impl RecordingLane {
    pub(super) fn new(room: usize, thread: Weak<RecordingThread>) -> Self {
        Self { ring: Mutex::new(Ring { events: Vec::with_capacity(room), room, dropped: 0 }), thread }
    }

    /// Adds an event, or counts it as dropped if there is no room. Takes no memory from the heap.
    pub fn push(&self, event: TraceEvent<'static>) {
        let is_half_full = {
            let mut ring = locked(&self.ring);
            if ring.events.len() >= ring.room {
                ring.dropped += 1;
                return;
            }
            ring.events.push(event);
            ring.events.len() == ring.room / 2
        };
        if is_half_full && let Some(thread) = self.thread.upgrade() {
            thread.wake();
        }
    }

    /// Takes all events, and leaves `empty` in their place; how many were dropped since the last time.
    pub(super) fn take(&self, empty: &mut Vec<TraceEvent<'static>>) -> u64 {
        empty.clear();
        let mut ring = locked(&self.ring);
        // The vector that is left has the same room, so that no push grows it.
        let missing = ring.room.saturating_sub(empty.capacity());
        if missing > 0 {
            empty.reserve_exact(ring.room);
        }
        std::mem::swap(&mut ring.events, empty);
        std::mem::take(&mut ring.dropped)
    }
}
