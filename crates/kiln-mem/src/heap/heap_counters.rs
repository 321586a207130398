//! Counts of what a heap did besides looking into its lists.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counts of what a heap did that takes longer than looking into its lists, since it was made.
///
/// ```
/// use std::sync::Arc;
///
/// use kiln_driver::{Driver, StreamRequest};
/// use kiln_mem::{DriverOrder, Heap, HeapConfig, MemoryResource, MemoryResourceExt, AllocationRequest};
///
/// let driver: Arc<dyn Driver> = kiln_sim::SimDevice::single(1);
/// let order = Arc::new(DriverOrder::new(driver.clone()));
/// let stream = order.add(driver.create_stream(StreamRequest::New { priority: 0 })?)?;
/// let heap = Heap::over_pages(driver, order, HeapConfig::default())?;
/// heap.free(heap.allocate(&AllocationRequest::new(100_000, stream))?)?;
/// let before = heap.activity();
/// heap.free(heap.allocate(&AllocationRequest::new(100_000, stream))?)?;
/// assert_eq!(before.growths, 1);
/// assert_eq!(heap.activity().since(&before), Default::default(), "the second time nothing had to be done");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct HeapActivity {
    /// Times memory was taken from the device: driver calls.
    pub growths: u64,
    /// Contiguous remaps that were mapped: a driver call for each frame of them.
    pub remaps_mapped: u64,
    /// Frames that were mapped for them.
    pub frames_mapped: u64,
    /// Remaps that were mapped already and used again.
    pub remaps_reused: u64,
    /// Unused remaps that were unmapped: a driver call each.
    pub remaps_unmapped: u64,
    /// Times nothing of a stream was in use, and its frames returned to their original places.
    pub layout_resets: u64,
    /// Requests for which memory had to be reclaimed, whether they were met or not.
    pub shortages: u64,
    /// Whether the heap has mapped so much that it holds more spare memory since (see [`Spare`](crate::Spare)): 0 or 1.
    pub spare_raised: u64,
}

impl HeapActivity {
    /// What was done after `earlier`.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            growths: self.growths.wrapping_sub(earlier.growths),
            remaps_mapped: self.remaps_mapped.wrapping_sub(earlier.remaps_mapped),
            frames_mapped: self.frames_mapped.wrapping_sub(earlier.frames_mapped),
            remaps_reused: self.remaps_reused.wrapping_sub(earlier.remaps_reused),
            remaps_unmapped: self.remaps_unmapped.wrapping_sub(earlier.remaps_unmapped),
            layout_resets: self.layout_resets.wrapping_sub(earlier.layout_resets),
            shortages: self.shortages.wrapping_sub(earlier.shortages),
            spare_raised: self.spare_raised.wrapping_sub(earlier.spare_raised),
        }
    }

    /// Whether the driver was called for it.
    pub fn called_driver(&self) -> bool {
        self.growths + self.remaps_mapped + self.remaps_unmapped + self.shortages > 0
    }
}

impl fmt::Display for HeapActivity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} growths, {} remaps mapped with {} frames, {} reused, {} unmapped, {} layout resets, {} shortages",
            self.growths,
            self.remaps_mapped,
            self.frames_mapped,
            self.remaps_reused,
            self.remaps_unmapped,
            self.layout_resets,
            self.shortages
        )?;
        if self.spare_raised == 0 { Ok(()) } else { f.write_str(", and more is spare_raised since") }
    }
}

/// Counts of what comes with driver calls, so that a shared counter is cheap next to it.
#[derive(Debug, Default)]
pub(crate) struct ActivityCounters {
    pub(crate) growths: SharedCounter,
    pub(crate) remaps_mapped: SharedCounter,
    pub(crate) frames_mapped: SharedCounter,
    /// Pages that these frames have.
    pub(crate) pages_mapped: SharedCounter,
    pub(crate) remaps_unmapped: SharedCounter,
    pub(crate) shortages: SharedCounter,
    pub(crate) spare_raised: SharedCounter,
}

/// Counts of the rest, under the lock of an arena.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct ArenaActivity {
    pub(crate) remaps_reused: u64,
    pub(crate) layout_resets: u64,
}

/// A counter that all threads share.
#[derive(Debug, Default)]
pub(crate) struct SharedCounter(AtomicU64);

impl SharedCounter {
    pub(crate) fn note(&self) {
        self.add(1);
    }

    pub(crate) fn add(&self, times: u64) {
        self.0.fetch_add(times, Ordering::Relaxed);
    }

    pub(crate) fn read(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl ActivityCounters {
    /// All counts, with those of the arenas.
    pub(crate) fn with(&self, arenas: impl Iterator<Item = ArenaActivity>) -> HeapActivity {
        let mut activity = HeapActivity {
            growths: self.growths.read(),
            remaps_mapped: self.remaps_mapped.read(),
            frames_mapped: self.frames_mapped.read(),
            remaps_unmapped: self.remaps_unmapped.read(),
            shortages: self.shortages.read(),
            spare_raised: self.spare_raised.read(),
            ..HeapActivity::default()
        };
        for here in arenas {
            activity.remaps_reused += here.remaps_reused;
            activity.layout_resets += here.layout_resets;
        }
        activity
    }
}
