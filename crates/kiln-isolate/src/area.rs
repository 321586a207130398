//! The memory client and worker share, and what lies where in it.
//!
//! ```text
//!   words      counts of the rings, bells, numbers of replies; each in a cache line of its own
//!   reply      the answer to the one question that is open
//!   fault      why the device is lost, written once
//!   notices    worker -> client: failures that arrived late
//!   commands   client -> worker: everything
//!   streams    how far each stream is
//!   events     which signal of each event is done
//! ```
//!
//! The file is sparse: what is never used is never there.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use kiln_driver::SharedBytes;

use crate::bell::Bell;
use crate::ring::{RingPlace, word};
use crate::shared_file::SharedFile;

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
const STREAMS_START: usize = COMMANDS_START + COMMANDS_BYTES;
/// Streams at a time.
pub(crate) const STREAMS_LIMIT: u32 = 1 << 16;
const EVENTS_START: usize = STREAMS_START + STREAMS_LIMIT as usize * 8;
/// Events at a time.
pub(crate) const EVENTS_LIMIT: u32 = 1 << 20;

/// Bytes of the whole.
pub(crate) const AREA_BYTES: u64 = (EVENTS_START + EVENTS_LIMIT as usize * 8) as u64;

/// Commands, from client to worker.
pub(crate) const COMMANDS: RingPlace =
    RingPlace { written: LINE, read: 2 * LINE, start: COMMANDS_START, capacity: COMMANDS_BYTES as u64 };
/// Late failures, from worker to client.
pub(crate) const NOTICES: RingPlace =
    RingPlace { written: 3 * LINE, read: 4 * LINE, start: NOTICES_START, capacity: NOTICES_BYTES as u64 };

/// What somebody sleeps on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Sleep {
    /// The worker, until there are commands.
    Commands,
    /// A client, until the ring has room.
    Room,
    /// A client, until its question is answered.
    Reply,
    /// Clients, until some work is done.
    Progress,
}

/// The shared memory, mapped.
#[derive(Clone, Debug)]
pub(crate) struct Area {
    bytes: Arc<SharedBytes>,
}

impl Area {
    pub(crate) fn map(file: &SharedFile) -> io::Result<Self> {
        if file.bytes() != AREA_BYTES {
            return Err(io::ErrorKind::InvalidData.into());
        }
        Ok(Self { bytes: Arc::new(file.map()?) })
    }

    pub(crate) fn bytes(&self) -> Arc<SharedBytes> {
        self.bytes.clone()
    }

    pub(crate) fn bell(&self, sleep: Sleep) -> Bell<'_> {
        static NOWHERE: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let offset = match sleep {
            Sleep::Commands => 5 * LINE,
            Sleep::Room => 6 * LINE,
            Sleep::Reply => 7 * LINE,
            Sleep::Progress => 8 * LINE,
        };
        let part = |offset| self.bytes.atomic_u32(offset).unwrap_or(&NOWHERE);
        Bell::new(part(offset), part(offset + 4))
    }

    /// The number of the newest answer.
    pub(crate) fn replied(&self) -> &AtomicU64 {
        word(&self.bytes, 9 * LINE)
    }

    /// Publishes an answer; it fits.
    pub(crate) fn reply(&self, number: u64, answer: &[u8]) {
        if self.bytes.write(REPLY_START, answer) {
            word(&self.bytes, 10 * LINE).store(answer.len() as u64, Ordering::Relaxed);
            self.replied().store(number, Ordering::Release);
            self.bell(Sleep::Reply).ring();
        }
    }

    /// Copies the newest answer out; none if its length is a lie.
    pub(crate) fn read_reply(&self) -> Option<Vec<u8>> {
        self.read_out(10 * LINE, REPLY_START, REPLY_LIMIT_BYTES)
    }

    /// Writes down why the device is lost; only the first counts.
    pub(crate) fn report_fault(&self, fault: &[u8]) {
        let length = word(&self.bytes, 11 * LINE);
        if length.load(Ordering::Acquire) == 0 && self.bytes.write(FAULT_START, fault) {
            length.store(fault.len() as u64, Ordering::Release);
        }
        for sleep in [Sleep::Progress, Sleep::Reply, Sleep::Room] {
            self.bell(sleep).ring();
        }
    }

    /// Whether the worker wrote down that the device is lost.
    pub(crate) fn has_fault(&self) -> bool {
        word(&self.bytes, 11 * LINE).load(Ordering::Acquire) != 0
    }

    /// Copies out why the device is lost; none if the length is a lie.
    pub(crate) fn read_fault(&self) -> Option<Vec<u8>> {
        self.read_out(11 * LINE, FAULT_START, FAULT_LIMIT_BYTES)
    }

    /// The number of the newest look at the device's health.
    pub(crate) fn examined(&self) -> &AtomicU64 {
        word(&self.bytes, 12 * LINE)
    }

    /// How far a stream is.
    pub(crate) fn stream(&self, cell: u32) -> &AtomicU64 {
        word(&self.bytes, STREAMS_START + cell.min(STREAMS_LIMIT - 1) as usize * 8)
    }

    /// Which signal of an event is done.
    pub(crate) fn event(&self, cell: u32) -> &AtomicU64 {
        word(&self.bytes, EVENTS_START + cell.min(EVENTS_LIMIT - 1) as usize * 8)
    }

    /// Wakes everybody on the client's side, whatever the counts of sleepers say.
    pub(crate) fn wake_client(&self) {
        for sleep in [Sleep::Progress, Sleep::Reply, Sleep::Room] {
            self.bell(sleep).ring_anyway();
        }
    }

    fn read_out(&self, length: usize, start: usize, limit: usize) -> Option<Vec<u8>> {
        let length = usize::try_from(word(&self.bytes, length).load(Ordering::Acquire)).ok()?;
        if length > limit {
            return None;
        }
        let mut bytes = vec![0; length];
        self.bytes.read(start, &mut bytes).then_some(bytes)
    }
}
