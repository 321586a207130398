//! Special registers.

use crate::{Axis, SpecialName};

/// A special register, reduced to what the executor can answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Special {
    Thread(Axis),
    BlockShape(Axis),
    Block(Axis),
    GridShape(Axis),
    Lane,
    Warp,
    Warps,
    LanesEqual,
    LanesBelow {
        inclusive: bool,
    },
    LanesAbove {
        inclusive: bool,
    },
    Clock {
        high: bool,
        wide: bool,
    },
    Timer {
        high: bool,
        wide: bool,
    },
    DynamicShared,
    TotalShared,
    Environment(u8),
    Constant(u64),
    Processor,
    /// The index of the cluster, and how many there are.
    Cluster(Axis),
    ClusterGridShape(Axis),
    /// The index of the block in its cluster, and how many blocks it has.
    BlockInCluster(Axis),
    ClusterShape(Axis),
    ClusterRank,
    ClusterBlocks,
    IsExplicitCluster,
    /// Where the shared memory of the block appears among generic addresses.
    SharedWindow,
    /// Where the local memory of the thread appears.
    LocalWindow,
}

impl Special {
    /// The special register with this name; `None` for one that the executor does not have.
    pub(crate) fn named(name: SpecialName, axis: Option<Axis>) -> Option<Self> {
        use SpecialName as Name;
        let at = axis.unwrap_or(Axis::X);
        Some(match name {
            Name::Tid => Self::Thread(at),
            Name::Ntid => Self::BlockShape(at),
            Name::Ctaid => Self::Block(at),
            Name::Nctaid => Self::GridShape(at),
            Name::Clusterid => Self::Cluster(at),
            Name::Nclusterid => Self::ClusterGridShape(at),
            Name::Laneid => Self::Lane,
            Name::Warpid => Self::Warp,
            Name::Nwarpid => Self::Warps,
            Name::Smid => Self::Processor,
            Name::Nsmid => Self::Constant(1),
            Name::Gridid => Self::Constant(1),
            Name::ClusterCtaid => Self::BlockInCluster(at),
            Name::ClusterNctaid => Self::ClusterShape(at),
            Name::ClusterCtarank => Self::ClusterRank,
            Name::ClusterNctarank => Self::ClusterBlocks,
            Name::IsExplicitCluster => Self::IsExplicitCluster,
            Name::LanemaskEq => Self::LanesEqual,
            Name::LanemaskLe => Self::LanesBelow { inclusive: true },
            Name::LanemaskLt => Self::LanesBelow { inclusive: false },
            Name::LanemaskGe => Self::LanesAbove { inclusive: true },
            Name::LanemaskGt => Self::LanesAbove { inclusive: false },
            Name::Clock => Self::Clock { high: false, wide: false },
            Name::ClockHi => Self::Clock { high: true, wide: false },
            Name::Clock64 => Self::Clock { high: false, wide: true },
            Name::Globaltimer => Self::Timer { high: false, wide: true },
            Name::GlobaltimerLo => Self::Timer { high: false, wide: false },
            Name::GlobaltimerHi => Self::Timer { high: true, wide: false },
            Name::TotalSmemSize | Name::AggrSmemSize => Self::TotalShared,
            Name::DynamicSmemSize => Self::DynamicShared,
            Name::CurrentGraphExec => Self::Constant(0),
            _ => return None,
        })
    }
}
