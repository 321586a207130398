//! Numbers that only grow.

use std::sync::atomic::{AtomicU64, Ordering};

use kiln_driver::{Command, Place};

/// What is counted. Only what the driver took counts, and only what went through the runtime.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
#[repr(usize)]
#[non_exhaustive]
pub enum Count {
    /// Kernels launched one by one.
    Launches,
    /// Graphs replayed.
    Replays,
    /// Fills.
    Fills,
    /// Bytes they wrote.
    FilledBytes,
    /// Copies from the host; a large transfer is several.
    Uploads,
    /// Bytes they moved.
    UploadedBytes,
    /// Copies to the host; a large transfer is several.
    Downloads,
    /// Bytes they moved.
    DownloadedBytes,
    /// Copies that stay on devices.
    Copies,
    /// Bytes they moved.
    CopiedBytes,
    /// Waits of one stream for another.
    StreamWaits,
    /// Events recorded.
    Signals,
    /// Times the host waited for the device.
    HostWaits,
    /// Times the host asked the device whether something was done.
    HostPolls,
    /// Graphs built.
    GraphsBuilt,
    /// Nodes changed in place.
    GraphUpdates,
    /// Pinned blocks that were found in the pool.
    PinnedReused,
    /// Pinned blocks that had to be made.
    PinnedMade,
    /// Modules that were asked for while they were loaded.
    ModuleHits,
    /// Compilations.
    Compilations,
    /// Nanoseconds they took.
    CompileNanoseconds,
    /// Modules loaded by the code cache.
    ModuleLoads,
    /// Nanoseconds that took.
    ModuleLoadNanoseconds,
    /// Nanoseconds saved by modules that were found loaded.
    MemorySavedNanoseconds,
    /// Nanoseconds saved by compiled code that was found on disk.
    DiskSavedNanoseconds,
    /// Compiled code found on disk.
    DiskHits,
    /// Compiled code not found on disk.
    DiskMisses,
    /// Prepared uses of blocks that were dropped without being finished.
    UnfinishedUses,
}

impl Count {
    /// All of them.
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
        Self::GraphsBuilt,
        Self::GraphUpdates,
        Self::PinnedReused,
        Self::PinnedMade,
        Self::ModuleHits,
        Self::Compilations,
        Self::CompileNanoseconds,
        Self::ModuleLoads,
        Self::ModuleLoadNanoseconds,
        Self::MemorySavedNanoseconds,
        Self::DiskSavedNanoseconds,
        Self::DiskHits,
        Self::DiskMisses,
        Self::UnfinishedUses,
    ];
}

/// As many numbers as there are counts.
pub(crate) type Numbers = [u64; Count::ALL.len()];

/// The numbers of one stream, or of what belongs to no stream. On lines of its own, so that no neighbour's writes are felt.
#[repr(align(128))]
pub(crate) struct Counters([AtomicU64; Count::ALL.len()]);

impl Default for Counters {
    fn default() -> Self {
        Self([const { AtomicU64::new(0) }; Count::ALL.len()])
    }
}

impl Counters {
    /// Adds, while nobody else does: the caller has entered the stream. A plain load and store.
    #[inline]
    pub(crate) fn add_entered(&self, count: Count, number: u64) {
        let cell = &self.0[count as usize];
        cell.store(cell.load(Ordering::Relaxed).wrapping_add(number), Ordering::Relaxed);
    }

    /// Adds, whatever other threads do; for counts that are never added to by [`add_entered`](Self::add_entered) at the same time.
    pub(crate) fn add(&self, count: Count, number: u64) {
        self.0[count as usize].fetch_add(number, Ordering::Relaxed);
    }

    /// Counts a command the stream took, while the caller has entered it.
    #[inline]
    pub(crate) fn note(&self, command: &Command<'_>) {
        match command {
            Command::Launch(_) => self.add_entered(Count::Launches, 1),
            Command::Graph(_) => self.add_entered(Count::Replays, 1),
            Command::Fill { pattern, count, .. } => {
                self.add_entered(Count::Fills, 1);
                self.add_entered(Count::FilledBytes, pattern.bytes() * count);
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
    pub(crate) fn note_copy(&self, from: &Place, to: &Place, bytes: u64) {
        let (copies, moved) = copy_counts(from, to);
        self.add(copies, 1);
        self.add(moved, bytes);
    }

    /// Adds these numbers to others.
    pub(crate) fn add_to(&self, numbers: &mut Numbers) {
        for (cell, number) in self.0.iter().zip(numbers) {
            *number = number.wrapping_add(cell.load(Ordering::Relaxed));
        }
    }

    /// Takes over the numbers of a stream whose place this one has.
    pub(crate) fn inherit(&self, other: &Self) {
        for (cell, inherited) in self.0.iter().zip(&other.0) {
            cell.store(inherited.load(Ordering::Relaxed), Ordering::Relaxed);
        }
    }
}

fn copy_counts(from: &Place, to: &Place) -> (Count, Count) {
    match (from, to) {
        (Place::Host { .. }, _) => (Count::Uploads, Count::UploadedBytes),
        (_, Place::Host { .. }) => (Count::Downloads, Count::DownloadedBytes),
        _ => (Count::Copies, Count::CopiedBytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_count_has_its_own_place_in_the_list() {
        for (at, count) in Count::ALL.iter().enumerate() {
            assert_eq!(*count as usize, at);
        }
    }
}
