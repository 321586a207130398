//! The shared memory segment of a client and its worker, and its layout.
//!
//! ```text
//!   words      counts of the rings, event counts, the number of the last reply; each in its own cache line
//!   reply      the answer to the question that is open; there is one at a time
//!   fault      why the device is lost, written once
//!   notices    ring, worker to client: failures of submissions that were accepted before
//!   commands   ring, client to worker: all requests
//!   aborts     ring, client to worker: ranks of communicators that are to be ended at once
//!   streams    how far each stream is
//!   events     which signal of each event is done
//! ```
//!
//! The file is sparse: parts that are never touched use no memory.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use kiln_driver::SharedBytes;

use super::futex_wait::EventCount;
use super::memory_file::MemoryFile;
use super::ring::{RingLayout, word};

const LINE: usize = 64;
const WORDS_BYTES: usize = 4096;
const REPLY_START: usize = WORDS_BYTES;
/// The longest answer.
pub(crate) const REPLY_LIMIT_BYTES: usize = 256 << 10;
const FAULT_START: usize = REPLY_START + REPLY_LIMIT_BYTES;
const FAULT_LIMIT_BYTES: usize = 16 << 10;
const NOTICES_START: usize = FAULT_START + FAULT_LIMIT_BYTES;
const NOTICES_BYTES: usize = 64 << 10;
const COMMANDS_START: usize = NOTICES_START + NOTICES_BYTES;
const COMMANDS_BYTES: usize = 1 << 20;
const ABORTS_START: usize = COMMANDS_START + COMMANDS_BYTES;
const ABORTS_BYTES: usize = 4096;
const STREAMS_START: usize = ABORTS_START + ABORTS_BYTES;
/// The most streams at a time.
pub(crate) const STREAMS_LIMIT: u32 = 1 << 16;
const EVENTS_START: usize = STREAMS_START + STREAMS_LIMIT as usize * 8;
/// The most events at a time.
pub(crate) const EVENTS_LIMIT: u32 = 1 << 20;

/// The size of the segment.
pub(crate) const SEGMENT_BYTES: u64 = (EVENTS_START + EVENTS_LIMIT as usize * 8) as u64;

/// Commands, from client to worker.
pub(crate) const COMMANDS: RingLayout =
    RingLayout { written: LINE, read: 2 * LINE, start: COMMANDS_START, capacity: COMMANDS_BYTES as u64 };
/// Late failures, from worker to client.
pub(crate) const NOTICES: RingLayout =
    RingLayout { written: 3 * LINE, read: 4 * LINE, start: NOTICES_START, capacity: NOTICES_BYTES as u64 };

/// Aborts, from client to worker. Each is in the commands, too, where it has its turn.
pub(crate) const ABORTS: RingLayout =
    RingLayout { written: 13 * LINE, read: 14 * LINE, start: ABORTS_START, capacity: ABORTS_BYTES as u64 };

/// What a thread waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Condition {
    /// The worker, for requests.
    Commands,
    /// A client, for room in the ring.
    Room,
    /// A client, for the answer to its question.
    Reply,
    /// Clients, for progress of streams and events.
    Progress,
    /// The worker's thread for aborts.
    Aborts,
}

/// The mapped segment.
#[derive(Clone, Debug)]
pub(crate) struct Segment {
    bytes: Arc<SharedBytes>,
}

impl Segment {
    pub(crate) fn map(file: &MemoryFile) -> io::Result<Self> {
        if file.bytes() != SEGMENT_BYTES {
            return Err(io::ErrorKind::InvalidData.into());
        }
        Ok(Self { bytes: Arc::new(file.map()?) })
    }

    pub(crate) fn bytes(&self) -> Arc<SharedBytes> {
        self.bytes.clone()
    }

    pub(crate) fn event_count(&self, sleep: Condition) -> EventCount<'_> {
        static OUTSIDE: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let offset = match sleep {
            Condition::Commands => 5 * LINE,
            Condition::Room => 6 * LINE,
            Condition::Reply => 7 * LINE,
            Condition::Progress => 8 * LINE,
            Condition::Aborts => 15 * LINE,
        };
        let part = |offset| self.bytes.atomic_u32(offset).unwrap_or(&OUTSIDE);
        EventCount::new(part(offset), part(offset + 4))
    }

    /// The number of the last question that was answered.
    pub(crate) fn replied(&self) -> &AtomicU64 {
        word(&self.bytes, 9 * LINE)
    }

    /// Publishes an answer of at most [`REPLY_LIMIT_BYTES`].
    pub(crate) fn reply(&self, number: u64, answer: &[u8]) {
        if self.bytes.write(REPLY_START, answer) {
            word(&self.bytes, 10 * LINE).store(answer.len() as u64, Ordering::Relaxed);
            self.replied().store(number, Ordering::Release);
            self.event_count(Condition::Reply).notify();
        }
    }

    /// Copies the last answer; `None` if its length is impossible.
    pub(crate) fn read_reply(&self) -> Option<Vec<u8>> {
        self.copy_out(10 * LINE, REPLY_START, REPLY_LIMIT_BYTES)
    }

    /// Publishes why the device is lost; only the first call has an effect.
    pub(crate) fn report_fault(&self, fault: &[u8]) {
        let length = word(&self.bytes, 11 * LINE);
        if length.load(Ordering::Acquire) == 0 && self.bytes.write(FAULT_START, fault) {
            length.store(fault.len() as u64, Ordering::Release);
        }
        for sleep in [Condition::Progress, Condition::Reply, Condition::Room] {
            self.event_count(sleep).notify();
        }
    }

    /// Whether the worker has published that the device is lost.
    pub(crate) fn has_fault(&self) -> bool {
        word(&self.bytes, 11 * LINE).load(Ordering::Acquire) != 0
    }

    /// Copies why the device is lost; `None` if the length is impossible.
    pub(crate) fn read_fault(&self) -> Option<Vec<u8>> {
        self.copy_out(11 * LINE, FAULT_START, FAULT_LIMIT_BYTES)
    }

    /// The number of the last health check that was done.
    pub(crate) fn examined(&self) -> &AtomicU64 {
        word(&self.bytes, 12 * LINE)
    }

    /// The cell of a stream: how far it is.
    pub(crate) fn stream(&self, cell: u32) -> &AtomicU64 {
        word(&self.bytes, STREAMS_START + cell.min(STREAMS_LIMIT - 1) as usize * 8)
    }

    /// The cell of an event: which signal is done.
    pub(crate) fn event(&self, cell: u32) -> &AtomicU64 {
        word(&self.bytes, EVENTS_START + cell.min(EVENTS_LIMIT - 1) as usize * 8)
    }

    /// Wakes every thread of the client, without relying on the counts of sleepers.
    pub(crate) fn wake_client(&self) {
        for sleep in [Condition::Progress, Condition::Reply, Condition::Room] {
            self.event_count(sleep).notify_always();
        }
    }

    fn copy_out(&self, length: usize, start: usize, limit: usize) -> Option<Vec<u8>> {
        let length = usize::try_from(word(&self.bytes, length).load(Ordering::Acquire)).ok()?;
        if length > limit {
            return None;
        }
        let mut bytes = vec![0; length];
        self.bytes.read(start, &mut bytes).then_some(bytes)
    }
}
