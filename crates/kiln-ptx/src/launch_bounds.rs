//! Bounds a function header puts on its launches.

use crate::name::Name;

/// `.maxntid`, `.reqntid` and their neighbours.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct LaunchBounds {
    /// `.maxntid`: the product bounds the threads of a block; absent dimensions are 1.
    pub max_threads: Option<[u32; 3]>,
    /// `.reqntid`: a block has exactly these dimensions.
    pub required_threads: Option<[u32; 3]>,
    /// `.minnctapersm`.
    pub min_blocks_per_multiprocessor: Option<u32>,
    /// `.maxnctapersm`.
    pub max_blocks_per_multiprocessor: Option<u32>,
    /// `.maxnreg`.
    pub max_registers: Option<u32>,
    /// `.reqnctapercluster`: a cluster has exactly these dimensions.
    pub required_cluster: Option<[u32; 3]>,
    /// `.maxclusterrank`.
    pub max_cluster_rank: Option<u32>,
    /// `.explicitcluster`: the launch must name cluster dimensions.
    pub explicit_cluster: bool,
    /// `.blocksareclusters`.
    pub blocks_are_clusters: bool,
    /// `.pragma` strings of the header.
    pub pragmas: Vec<Name>,
    /// Directives this crate has no field for, with their arguments as written.
    pub other: Vec<OtherDirective>,
}

/// A header directive without a field here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OtherDirective {
    /// The word without its dot.
    pub name: Name,
    /// Its numeric arguments.
    pub arguments: Vec<i64>,
}

impl LaunchBounds {
    /// The most threads a block may have, when the header says.
    pub fn max_threads_per_block(&self) -> Option<u64> {
        let dimensions = self.required_threads.or(self.max_threads)?;
        Some(dimensions.iter().fold(1u64, |n, d| n.saturating_mul(u64::from(*d))))
    }
}
