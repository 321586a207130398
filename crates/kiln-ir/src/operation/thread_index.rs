//! Indices and sizes of threads, blocks and the grid.

use crate::scalar_type::Type;
use crate::word_enum::word_enum;

word_enum! {
    /// One of three dimensions.
    pub enum Axis {
        /// The first; consecutive threads of a warp differ in it.
        X = "x",
        /// The second.
        Y = "y",
        /// The third.
        Z = "z",
    }
}

impl Axis {
    /// 0, 1 or 2.
    pub const fn index(self) -> usize {
        self as usize
    }
}

/// An index or a size of the launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Builtin {
    /// The index of the thread in its block, a `u32`.
    Thread(Axis),
    /// The index of the block in the grid, a `u32`.
    Block(Axis),
    /// The number of threads of a block, a `u32`.
    BlockDim(Axis),
    /// The number of blocks of the grid, a `u32`.
    GridDim(Axis),
    /// The index of the thread in the grid, a `u64`: `block * block_dim + thread`, which does not wrap.
    Global(Axis),
    /// The lane of the thread, 0 to 31, a `u32`. Threads are numbered along x, then y, then z.
    Lane,
    /// The index of the warp in its block, a `u32`.
    Warp,
}

impl Builtin {
    /// Its type.
    pub const fn ty(self) -> Type {
        match self {
            Self::Global(_) => Type::U64,
            _ => Type::U32,
        }
    }

    /// The builtin with this word and axis.
    pub(crate) fn from_words(word: &str, axis: Option<&str>) -> Option<Self> {
        let axis = match axis {
            Some(axis) => Some(Axis::from_word(axis)?),
            None => None,
        };
        Some(match (word, axis) {
            ("thread", Some(axis)) => Self::Thread(axis),
            ("block", Some(axis)) => Self::Block(axis),
            ("block_dim", Some(axis)) => Self::BlockDim(axis),
            ("grid_dim", Some(axis)) => Self::GridDim(axis),
            ("global", Some(axis)) => Self::Global(axis),
            ("lane", None) => Self::Lane,
            ("warp", None) => Self::Warp,
            _ => return None,
        })
    }
}

impl std::fmt::Display for Builtin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Thread(axis) => write!(f, "thread.{axis}"),
            Self::Block(axis) => write!(f, "block.{axis}"),
            Self::BlockDim(axis) => write!(f, "block_dim.{axis}"),
            Self::GridDim(axis) => write!(f, "grid_dim.{axis}"),
            Self::Global(axis) => write!(f, "global.{axis}"),
            Self::Lane => f.write_str("lane"),
            Self::Warp => f.write_str("warp"),
        }
    }
}
