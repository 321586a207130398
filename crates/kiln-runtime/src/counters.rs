//! The monotonic counters of a runtime.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use kiln_order::StreamCount;

/// What is counted. Only what the driver took counts, and only what went through the runtime.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
#[repr(usize)]
#[non_exhaustive]
pub enum Count {
    /// Kernels and library operations launched one by one.
    Launches,
    /// Those of the launches that were work of a library call: the operations of NVIDIA's libraries, and the kernels of `kiln-libs`.
    LibraryLaunches,
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
    /// Modules that were asked for while they were loaded; a program that is compiled again while its pipeline is held is one.
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
    /// Compiled code written to disk.
    DiskStores,
    /// Prepared uses of blocks that were dropped without being finished.
    UnfinishedUses,
}

impl Count {
    /// All of them.
    pub const ALL: &'static [Self] = &[
        Self::Launches,
        Self::LibraryLaunches,
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
        Self::DiskStores,
        Self::UnfinishedUses,
    ];
}

impl From<StreamCount> for Count {
    fn from(count: StreamCount) -> Self {
        match count {
            StreamCount::Launches => Self::Launches,
            StreamCount::Replays => Self::Replays,
            StreamCount::Fills => Self::Fills,
            StreamCount::FilledBytes => Self::FilledBytes,
            StreamCount::Uploads => Self::Uploads,
            StreamCount::UploadedBytes => Self::UploadedBytes,
            StreamCount::Downloads => Self::Downloads,
            StreamCount::DownloadedBytes => Self::DownloadedBytes,
            StreamCount::Copies => Self::Copies,
            StreamCount::CopiedBytes => Self::CopiedBytes,
            StreamCount::StreamWaits => Self::StreamWaits,
            StreamCount::Signals => Self::Signals,
            StreamCount::HostWaits => Self::HostWaits,
            StreamCount::HostPolls => Self::HostPolls,
            StreamCount::LibraryLaunches => Self::LibraryLaunches,
        }
    }
}

/// As many numbers as there are counts.
pub(crate) type Numbers = [u64; Count::ALL.len()];

/// A part of a runtime that counts by itself.
pub(crate) trait Counted {
    /// Adds its numbers to others.
    fn add_to(&self, numbers: &mut Numbers);
}

/// The numbers of what belongs to no stream.
pub(crate) struct Counters([AtomicU64; Count::ALL.len()]);

impl Default for Counters {
    fn default() -> Self {
        Self([const { AtomicU64::new(0) }; Count::ALL.len()])
    }
}

impl Counters {
    /// Adds to a count, from any thread.
    pub(crate) fn add(&self, count: Count, number: u64) {
        self.0[count as usize].fetch_add(number, Ordering::Relaxed);
    }

    /// What was counted so far.
    pub(crate) fn get(&self, count: Count) -> u64 {
        self.0[count as usize].load(Ordering::Relaxed)
    }

    /// Adds these numbers to others.
    pub(crate) fn add_to(&self, numbers: &mut Numbers) {
        for (cell, number) in self.0.iter().zip(numbers) {
            *number = number.wrapping_add(cell.load(Ordering::Relaxed));
        }
    }
}

/// What had been counted at the last reset.
#[derive(Default)]
pub(crate) struct Baseline(Mutex<Option<Box<Numbers>>>);

impl Baseline {
    /// Counts begin at zero from these numbers on.
    pub(crate) fn set(&self, numbers: Numbers) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(numbers));
    }

    /// What was counted since the last reset.
    pub(crate) fn subtract_from(&self, numbers: &mut Numbers) {
        if let Some(baseline) = &*self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            for (number, before) in numbers.iter_mut().zip(baseline.iter()) {
                *number = number.saturating_sub(*before);
            }
        }
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
