//! Operations of a whole warp or block.

use crate::scalar_type::Type;
use crate::word_enum::word_enum;

word_enum! {
    /// A warp-level operation. Only existing lanes take part: the last warp of a block may have fewer than 32.
    pub enum WarpOp {
        /// A `u32` with bit n set if the operand of lane n is true.
        Ballot = "ballot",
        /// Whether the operand of any lane is true.
        Any = "warp_any",
        /// Whether the operands of all lanes are true.
        All = "warp_all",
        /// The value of the given lane; the lane's own value if it does not exist.
        Shuffle = "shuffle",
        /// The value of the lane this far below; the lane's own value if it does not exist.
        ShuffleUp = "shuffle_up",
        /// The value of the lane this far above; the lane's own value if it does not exist.
        ShuffleDown = "shuffle_down",
        /// The value of the lane whose index differs in these bits; the lane's own value if it does not exist.
        ShuffleXor = "shuffle_xor",
        /// The sum of all lanes. Integers wrap. Floats are added as a tree: lane n adds that of lane n + 16, then n +
        /// 8, 4, 2, 1, and all lanes get the sum of lane 0.
        Add = "warp_add",
        /// The minimum over all lanes, as [`BinaryOp::Min`](crate::BinaryOp::Min) defines it.
        Min = "warp_min",
        /// The maximum over all lanes, as [`BinaryOp::Max`](crate::BinaryOp::Max) defines it.
        Max = "warp_max",
        /// The bitwise and over all lanes. Only for integers.
        And = "warp_and",
        /// The bitwise or over all lanes. Only for integers.
        Or = "warp_or",
        /// The bitwise exclusive or over all lanes. Only for integers.
        Xor = "warp_xor",
    }
}

impl WarpOp {
    /// Whether it has a second operand, a lane or a distance.
    pub const fn is_shuffle(self) -> bool {
        matches!(self, Self::Shuffle | Self::ShuffleUp | Self::ShuffleDown | Self::ShuffleXor)
    }

    /// Whether its operand is a bool.
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

word_enum! {
    /// A vote of a block at a barrier.
    pub enum BlockVote {
        /// Whether the operand of any thread is true.
        Any = "block_any",
        /// Whether the operands of all threads are true.
        All = "block_all",
        /// The number of threads whose operand is true, a `u32`.
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
