//! What one stream did, in numbers that only grow.

use std::sync::atomic::{AtomicU64, Ordering};

use kiln_driver::{Command, Place};

/// What is counted for each stream. Only commands that the driver accepted count.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
#[repr(usize)]
pub enum StreamCount {
    /// Kernels and library operations launched one by one.
    Launches,
    /// Graphs replayed.
    Replays,
    /// Fills.
    Fills,
    /// Bytes written by fills.
    FilledBytes,
    /// Copies from the host; a large transfer is several.
    Uploads,
    /// Bytes copied from the host.
    UploadedBytes,
    /// Copies to the host; a large transfer is several.
    Downloads,
    /// Bytes copied to the host.
    DownloadedBytes,
    /// Copies that stay on devices.
    Copies,
    /// Bytes copied on devices.
    CopiedBytes,
    /// Waits of one stream for another.
    StreamWaits,
    /// Events recorded.
    Signals,
    /// Times the host waited for the device.
    HostWaits,
    /// Times the host asked the device whether something was done.
    HostPolls,
    /// Those of the launches that were work of a library call.
    LibraryLaunches,
}

impl StreamCount {
    /// All of them, in the order of their numbers.
    pub const ALL: &'static [Self] = &[
        Self::Launches,
        Self::Replays,
        Self::Fills,
        Self::FilledBytes,
        Self::Uploads,
        Self::UploadedBytes,
        Self::Downloads,
        Self::DownloadedBytes,
        Self::Copies,
        Self::CopiedBytes,
        Self::StreamWaits,
        Self::Signals,
        Self::HostWaits,
        Self::HostPolls,
        Self::LibraryLaunches,
    ];
}

/// One number for each [`StreamCount`].
pub type StreamCounts = [u64; StreamCount::ALL.len()];

/// The counters of one stream, on cache lines that it shares with nothing else.
#[repr(align(128))]
pub struct StreamCounters([AtomicU64; StreamCount::ALL.len()]);

impl Default for StreamCounters {
    fn default() -> Self {
        Self([const { AtomicU64::new(0) }; StreamCount::ALL.len()])
    }
}

impl StreamCounters {
    /// Adds to a count that no other thread adds to at the moment, because the caller has entered the stream. A plain load and store.
    #[inline]
    pub fn add_entered(&self, count: StreamCount, number: u64) {
        let cell = &self.0[count as usize];
        cell.store(cell.load(Ordering::Relaxed).wrapping_add(number), Ordering::Relaxed);
    }

    /// Adds to a count from any thread; for counts that [`add_entered`](Self::add_entered) does not change at the same time.
    pub fn add(&self, count: StreamCount, number: u64) {
        self.0[count as usize].fetch_add(number, Ordering::Relaxed);
    }

    /// Counts a command that the driver accepted. The caller has entered the stream.
    #[inline]
    pub fn note(&self, command: &Command<'_>) {
        match command {
            Command::Launch(_) => self.add_entered(StreamCount::Launches, 1),
            Command::Graph(_) => self.add_entered(StreamCount::Replays, 1),
            Command::Fill { pattern, count, .. } => {
                self.add_entered(StreamCount::Fills, 1);
                self.add_entered(StreamCount::FilledBytes, pattern.bytes() * count);
            }
            Command::Copy { from, to, bytes } => {
                let (copies, moved) = copy_counts(from, to);
                self.add_entered(copies, 1);
                self.add_entered(moved, *bytes);
            }
            Command::Signal(_) | Command::Wait(_) => {}
            _ => {}
        }
    }

    /// Counts a copy that one of several threads submitted within one entry.
    pub fn note_copy(&self, from: &Place, to: &Place, bytes: u64) {
        let (copies, moved) = copy_counts(from, to);
        self.add(copies, 1);
        self.add(moved, bytes);
    }

    /// Adds these numbers to `counts`.
    pub fn add_to(&self, counts: &mut StreamCounts) {
        for (cell, number) in self.0.iter().zip(counts) {
            *number = number.wrapping_add(cell.load(Ordering::Relaxed));
        }
    }

    /// Copies the numbers of the stream that had this stream's key before.
    pub(crate) fn inherit(&self, other: &Self) {
        for (cell, inherited) in self.0.iter().zip(&other.0) {
            cell.store(inherited.load(Ordering::Relaxed), Ordering::Relaxed);
        }
    }
}

fn copy_counts(from: &Place, to: &Place) -> (StreamCount, StreamCount) {
    match (from, to) {
        (Place::Host { .. }, _) => (StreamCount::Uploads, StreamCount::UploadedBytes),
        (_, Place::Host { .. }) => (StreamCount::Downloads, StreamCount::DownloadedBytes),
        _ => (StreamCount::Copies, StreamCount::CopiedBytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_count_has_its_own_place_in_the_list() {
        for (at, count) in StreamCount::ALL.iter().enumerate() {
            assert_eq!(*count as usize, at);
        }
    }
}
