//! What threads of a warp or a block compute together.

use crate::scalar_type::Type;
use crate::words::words;

words! {
    /// What the lanes of a warp do. Only lanes that exist take part: the last warp of a block may have fewer than 32.
    pub enum WarpOp {
        /// A `u32` with bit n set if lane n says true.
        Ballot = "ballot",
        /// Whether a lane says true.
        Any = "warp_any",
        /// Whether every lane says true.
        All = "warp_all",
        /// The value of the lane with this number; the own value if there is no such lane.
        Shuffle = "shuffle",
        /// The value of the lane this far below; the own value if there is no such lane.
        ShuffleUp = "shuffle_up",
        /// The value of the lane this far above; the own value if there is no such lane.
        ShuffleDown = "shuffle_down",
        /// The value of the lane whose number differs in these bits; the own value if there is no such lane.
        ShuffleXor = "shuffle_xor",
        /// The sum of all lanes. Integers wrap. Floats are added as a tree: lane n takes that of lane n + 16, then n + 8,
        /// 4, 2, 1, and what lane 0 has at the end is the answer for all.
        Add = "warp_add",
        /// The smallest of all lanes, in the order of [`BinaryOp::Min`](crate::BinaryOp::Min).
        Min = "warp_min",
        /// The largest of all lanes, in the order of [`BinaryOp::Max`](crate::BinaryOp::Max).
        Max = "warp_max",
        /// The bits all lanes have. Only for integers.
        And = "warp_and",
        /// The bits any lane has. Only for integers.
        Or = "warp_or",
        /// The bits an odd number of lanes has. Only for integers.
        Xor = "warp_xor",
    }
}

impl WarpOp {
    /// Whether it has a second operand, a lane or a distance.
    pub const fn is_shuffle(self) -> bool {
        matches!(self, Self::Shuffle | Self::ShuffleUp | Self::ShuffleDown | Self::ShuffleXor)
    }

    /// Whether it asks for truths.
    pub const fn is_vote(self) -> bool {
        matches!(self, Self::Ballot | Self::Any | Self::All)
    }

    /// Whether it can work on a type. Shuffles work on all, reductions on all numbers.
    pub const fn accepts(self, ty: Type) -> bool {
        match self {
            Self::Ballot | Self::Any | Self::All => matches!(ty, Type::Bool),
            Self::Shuffle | Self::ShuffleUp | Self::ShuffleDown | Self::ShuffleXor => true,
            Self::Add | Self::Min | Self::Max => !matches!(ty, Type::Bool),
            Self::And | Self::Or | Self::Xor => ty.is_integer(),
        }
    }

    /// The type of the result.
    pub const fn result(self, ty: Type) -> Type {
        match self {
            Self::Ballot => Type::U32,
            _ => ty,
        }
    }
}

words! {
    /// What the threads of a block are asked at a barrier.
    pub enum BlockVote {
        /// Whether a thread says true.
        Any = "block_any",
        /// Whether every thread says true.
        All = "block_all",
        /// How many threads say true, a `u32`.
        Count = "block_count",
    }
}

impl BlockVote {
    /// The type of the result.
    pub const fn result(self) -> Type {
        match self {
            Self::Any | Self::All => Type::Bool,
            Self::Count => Type::U32,
        }
    }
}
