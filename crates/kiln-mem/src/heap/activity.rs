//! What a heap did beside looking into its lists.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

/// What a heap did that takes longer than looking into its lists, since it was made. Where a program is slower than it
/// was, this says which of it is new.
///
/// ```
/// use std::sync::Arc;
///
/// use kiln_driver::{Driver, StreamRequest};
/// use kiln_mem::{DriverOrder, Heap, HeapConfig, MemoryResource, MemoryResourceExt, Request};
///
/// let driver: Arc<dyn Driver> = kiln_sim::SimDevice::single(1);
/// let order = Arc::new(DriverOrder::new(driver.clone()));
/// let stream = order.add(driver.create_stream(StreamRequest::New { priority: 0 })?);
/// let heap = Heap::over_pages(driver, order, HeapConfig::default())?;
/// heap.free(heap.allocate(&Request::new(100_000, stream))?)?;
/// let before = heap.activity();
/// heap.free(heap.allocate(&Request::new(100_000, stream))?)?;
/// assert_eq!(before.growths, 1);
/// assert_eq!(heap.activity().since(&before), Default::default(), "the second time nothing had to be done");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct HeapActivity {
    /// Memory was taken from the device: driver calls.
    pub growths: u64,
    /// Free frames were mapped in a row: a driver call for each frame.
    pub folds_mapped: u64,
    /// The frames that were mapped for it.
    pub frames_mapped: u64,
    /// Free frames were found mapped in that order already.
    pub folds_reused: u64,
    /// Rows that were nobody's home were unmapped: a driver call each.
    pub folds_unmapped: u64,
    /// Nothing of a stream was in use, and its frames went back to where they were born.
    pub homecomings: u64,
    /// Requests went down the ladder, whether they were met or not.
    pub climbs: u64,
    /// Mapping had cost enough, and since then more is held beside what is in use (see [`Spare`](crate::Spare)): once at the most.
    pub spared: u64,
}

impl HeapActivity {
    /// What came after an earlier look.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            growths: self.growths.wrapping_sub(earlier.growths),
            folds_mapped: self.folds_mapped.wrapping_sub(earlier.folds_mapped),
            frames_mapped: self.frames_mapped.wrapping_sub(earlier.frames_mapped),
            folds_reused: self.folds_reused.wrapping_sub(earlier.folds_reused),
            folds_unmapped: self.folds_unmapped.wrapping_sub(earlier.folds_unmapped),
            homecomings: self.homecomings.wrapping_sub(earlier.homecomings),
            climbs: self.climbs.wrapping_sub(earlier.climbs),
            spared: self.spared.wrapping_sub(earlier.spared),
        }
    }

    /// Whether the driver was called for it.
    pub fn called_driver(&self) -> bool {
        self.growths + self.folds_mapped + self.folds_unmapped + self.climbs > 0
    }
}

impl fmt::Display for HeapActivity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} growths, {} folds mapped with {} frames, {} reused, {} unmapped, {} homecomings, {} climbs",
            self.growths,
            self.folds_mapped,
            self.frames_mapped,
            self.folds_reused,
            self.folds_unmapped,
            self.homecomings,
            self.climbs
        )?;
        if self.spared == 0 { Ok(()) } else { f.write_str(", and more is spared since") }
    }
}

/// The part of it that comes with driver calls, so that a shared counter costs nothing beside them.
#[derive(Debug, Default)]
pub(crate) struct Happened {
    pub(crate) growths: Count,
    pub(crate) folds_mapped: Count,
    pub(crate) frames_mapped: Count,
    pub(crate) folds_unmapped: Count,
    pub(crate) climbs: Count,
    pub(crate) spared: Count,
}

/// The part that does not; kept under the lock of an arena.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct HappenedHere {
    pub(crate) folds_reused: u64,
    pub(crate) homecomings: u64,
}

/// How often something happened.
#[derive(Debug, Default)]
pub(crate) struct Count(AtomicU64);

impl Count {
    pub(crate) fn note(&self) {
        self.add(1);
    }

    pub(crate) fn add(&self, times: u64) {
        self.0.fetch_add(times, Ordering::Relaxed);
    }

    fn read(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Happened {
    /// Together with what happened in arenas.
    pub(crate) fn with(&self, arenas: impl Iterator<Item = HappenedHere>) -> HeapActivity {
        let mut activity = HeapActivity {
            growths: self.growths.read(),
            folds_mapped: self.folds_mapped.read(),
            frames_mapped: self.frames_mapped.read(),
            folds_unmapped: self.folds_unmapped.read(),
            climbs: self.climbs.read(),
            spared: self.spared.read(),
            ..HeapActivity::default()
        };
        for here in arenas {
            activity.folds_reused += here.folds_reused;
            activity.homecomings += here.homecomings;
        }
        activity
    }
}
