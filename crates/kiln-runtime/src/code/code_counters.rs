//! What the code caches did, in numbers.

use std::time::Duration;

use crate::code_cache::CacheCounters;

/// What the code caches of a runtime did so far.
///
/// ```
/// use kiln::DeviceRuntime;
///
/// const PTX: &str = ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry nothing() { ret; }";
///
/// let gpu = DeviceRuntime::simulated(0)?;
/// let first = gpu.kernel(PTX, "nothing")?;
/// let second = gpu.kernel(PTX, "nothing")?;
/// let counters = gpu.code_counters();
/// assert_eq!((counters.loads, counters.memory_hits), (1, 1));
/// assert!(counters.time_saved() >= counters.load_time);
/// # Ok::<(), kiln::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CodeCounters {
    /// Modules that were asked for while they were loaded.
    pub memory_hits: u64,
    /// Time it took once to compile and load what was found loaded.
    pub memory_time_saved: Duration,
    /// Compilations of CUDA C by NVRTC.
    pub compilations: u64,
    /// Time they took.
    pub compile_time: Duration,
    /// Modules that were loaded.
    pub loads: u64,
    /// Time that took, which includes the driver's compilation of PTX that was not found on disk.
    pub load_time: Duration,
    /// What the disk did.
    pub disk: CacheCounters,
}

impl CodeCounters {
    /// Time that caches in memory and on disk saved: what everything they answered took to make when it was made.
    pub fn time_saved(&self) -> Duration {
        self.memory_time_saved.saturating_add(self.disk.time_saved)
    }
}
