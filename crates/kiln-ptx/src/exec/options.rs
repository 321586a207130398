//! Options of a launch: its shape, its checks, the order of execution.

use super::check::ValueRules;
#[cfg(feature = "mutations")]
use super::check::{RaceRule, ValueRule};
use super::coverage::Coverage;
use super::launch_progress::LaunchProgress;
use super::memory::DeviceHeap;
use super::statistics::LaunchStatistics;

/// Blocks in the grid, threads in a block, and shared memory beyond what the kernel declares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaunchShape {
    /// Blocks in each dimension.
    pub grid: [u32; 3],
    /// Threads of a block in each dimension.
    pub block: [u32; 3],
    /// Bytes of dynamic shared memory.
    pub dynamic_shared_bytes: u32,
    /// Whether all blocks run at once and may wait for each other.
    pub cooperative: bool,
    /// Blocks of a cluster in each dimension, where the launch names them; the kernel may do so too.
    pub cluster: Option<[u32; 3]>,
    /// Whether a cluster may have more blocks than every device with clusters runs.
    pub non_portable_cluster: bool,
}

impl LaunchShape {
    /// The most threads of a block.
    pub const MAX_THREADS: u64 = 1024;
    /// The most shared memory of a block, as of the largest devices.
    pub const MAX_SHARED_BYTES: u64 = 227 << 10;

    /// The most shared memory a kernel declares; a launch can add more.
    pub const MAX_STATIC_SHARED_BYTES: u64 = 48 << 10;
    /// The most bytes of parameters of a kernel.
    pub const MAX_PARAMETER_BYTES: u64 = 32_764;
    /// The most bytes of parameters in PTX older than [`WIDE_PARAMETERS_FROM`](Self::WIDE_PARAMETERS_FROM).
    pub const MAX_NARROW_PARAMETER_BYTES: u64 = 4352;
    /// The first version of PTX with more parameters: major and minor number.
    pub const WIDE_PARAMETERS_FROM: (u32, u32) = (8, 1);
    /// The most blocks of a cluster on every device that has clusters.
    pub const MAX_PORTABLE_CLUSTER: u64 = 8;
    /// The most blocks of a cluster of a kernel that may have more than that.
    pub const MAX_CLUSTER: u64 = 16;
    /// The first architecture with clusters.
    pub const CLUSTERS_FROM_SM: u32 = 90;
    /// The most local memory of a thread.
    pub const MAX_LOCAL_BYTES: u64 = 512 << 10;

    /// A grid and a block of one dimension.
    pub fn linear(blocks: u32, threads: u32) -> Self {
        Self::new([blocks, 1, 1], [threads, 1, 1])
    }

    /// A grid of blocks, without dynamic shared memory and clusters.
    pub const fn new(grid: [u32; 3], block: [u32; 3]) -> Self {
        Self {
            grid,
            block,
            dynamic_shared_bytes: 0,
            cooperative: false,
            cluster: None,
            non_portable_cluster: false,
        }
    }

    /// The same in clusters of so many blocks.
    #[must_use]
    pub const fn in_clusters(self, blocks: [u32; 3]) -> Self {
        Self { cluster: Some(blocks), ..self }
    }

    pub(crate) fn blocks(&self) -> u64 {
        self.grid.iter().fold(1u64, |n, d| n.saturating_mul(u64::from(*d)))
    }

    pub(crate) fn threads(&self) -> u64 {
        self.block.iter().fold(1u64, |n, d| n.saturating_mul(u64::from(*d)))
    }
}

/// What is checked while a kernel runs. Bounds, freed memory, alignment, endless loops and the limits always are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Checks {
    /// Races between threads, in shared and in global memory, and asynchronous copies that are used before they are done.
    pub races: bool,
    /// Barriers reached by a diverged warp or with different counts, and values taken from lanes that do not take part.
    pub barriers: bool,
    /// Uses of values that were never written or assigned.
    pub uninitialised: bool,
    /// What is a note otherwise is a finding: several threads that write the same value. What is not told otherwise is a note: threads
    /// that exit before a barrier of their block.
    pub strict: bool,
}

impl Checks {
    /// Every check, not strict.
    pub const ALL: Self = Self { races: true, barriers: true, uninitialised: true, strict: false };
    /// Only what a GPU itself notices.
    pub const NONE: Self = Self { races: false, barriers: false, uninitialised: false, strict: false };
}

impl Default for Checks {
    fn default() -> Self {
        Self { races: true, barriers: true, uninitialised: false, strict: false }
    }
}

/// How a launch is run.
#[derive(Clone, Copy, Debug)]
pub struct Options<'a> {
    /// What is checked.
    pub checks: Checks,
    /// Fixes the order of blocks, the interleaving of warps and lanes, and where threads are preempted; 0 is the order of their numbers, without preemption.
    pub seed: u64,
    /// Host threads that run blocks at the same time. With one the launch is deterministic.
    pub threads: usize,
    /// The most instructions one warp may run.
    pub step_limit: u64,
    /// The most instructions all warps together may run from one exit of a thread to the next.
    pub stall_limit: u64,
    /// Whether nothing but this launch writes its memory while it runs. A loop that waits for memory that no thread will change is then
    /// known not to end.
    pub sole_writer: bool,
    /// What else writes memory while the launch runs, if it is not the only writer. Without it, a loop that waits for memory runs until a
    /// limit.
    pub other_writers: Option<OtherWriters<'a>>,
    /// The heap of `malloc` in kernels; without one, `malloc` answers null.
    pub heap: Option<&'a DeviceHeap>,
    /// Where it is kept which instructions were executed; none to keep nothing.
    pub coverage: Option<&'a Coverage>,
    /// Where it is counted what every instruction does; none to count nothing of it.
    pub statistics: Option<&'a LaunchStatistics>,
    /// The most findings kept, and the most notes.
    pub max_findings: usize,
    /// The most bytes of printed text that are kept.
    pub max_printed_bytes: usize,
    /// Where it is kept how far the launch is; none to keep nothing.
    pub progress: Option<&'a LaunchProgress>,
    /// Whether lanes are computed and checked one by one, with what every processor has. It is slower and changes no result: for tests that compare.
    pub portable: bool,
    /// A rule of the race check that does not hold: for tests that show that it is needed.
    #[cfg(feature = "mutations")]
    pub without_rule: Option<RaceRule>,
    /// A rule about values and memory that does not hold: for tests that show that it is needed.
    #[cfg(feature = "mutations")]
    pub without_value_rule: Option<ValueRule>,
}

/// What else writes memory while a launch runs.
#[derive(Clone, Copy)]
pub struct OtherWriters<'a>(
    /// Called when all threads wait in loops for memory that none of them will change. It lets others work and answers whether they may
    /// have changed memory. If not, the loops do not end.
    pub &'a (dyn Fn() -> bool + Sync),
);

impl std::fmt::Debug for OtherWriters<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("OtherWriters")
    }
}

impl Options<'_> {
    /// The rules about values and memory that hold.
    pub(crate) fn value_rules(&self) -> ValueRules {
        #[cfg(feature = "mutations")]
        return ValueRules::without(self.without_value_rule);
        #[cfg(not(feature = "mutations"))]
        ValueRules::default()
    }

    /// Whether loops that wait for memory which no thread will change are looked for.
    pub(crate) fn finds_endless_waits(&self) -> bool {
        self.sole_writer || self.other_writers.is_some()
    }

    /// Whether something outside of the launch may have changed memory for which its threads wait.
    pub(crate) fn let_others_write(&self) -> bool {
        !self.sole_writer && self.other_writers.is_some_and(|others| others.0())
    }
}

impl Default for Options<'_> {
    fn default() -> Self {
        Self {
            checks: Checks::default(),
            seed: 0,
            threads: 1,
            step_limit: 1 << 28,
            stall_limit: u64::MAX,
            sole_writer: false,
            other_writers: None,
            heap: None,
            coverage: None,
            statistics: None,
            max_findings: 100,
            max_printed_bytes: 16 << 20,
            progress: None,
            portable: false,
            #[cfg(feature = "mutations")]
            without_rule: None,
            #[cfg(feature = "mutations")]
            without_value_rule: None,
        }
    }
}
