//! What a program declares: buffers, scalars, shared memory, tiles, variables, values.

use crate::scalar_type::Type;
use crate::word_enum::word_enum;

/// Index types of the lists of a program.
macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident,)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(pub u32);

        impl $name {
            pub(crate) fn index(self) -> usize {
                self.0 as usize
            }
        }
    )*};
}

ids! {
    /// Which [`Buffer`] of a program.
    BufferId,
    /// Which [`ScalarParameter`] of a program.
    ScalarId,
    /// Which [`Shared`] of a program.
    SharedId,
    /// Which [`Tile`] of a program.
    TileId,
    /// Which [`Variable`] of a program.
    VariableId,
    /// Which [`Value`] of a program. Values are numbered in the order in which the text defines them.
    ValueId,
}

word_enum! {
    /// What a buffer is for.
    pub enum Role {
        /// Only read. Nothing writes it while the launch runs.
        Input = "in",
        /// Only written. Elements that no thread stores keep their content.
        Output = "out",
        /// Read and written.
        InOut = "inout",
        /// Read and written, and kept on the device between launches.
        Persistent = "persistent",
    }
}

impl Role {
    /// Whether a program may load from it.
    pub const fn is_readable(self) -> bool {
        !matches!(self, Self::Output)
    }

    /// Whether a program may store to it.
    pub const fn is_writable(self) -> bool {
        !matches!(self, Self::Input)
    }
}

/// How many elements a buffer has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Extent {
    /// The launch gives the number.
    #[default]
    Dynamic,
    /// Always this many.
    Static(u64),
    /// As many as another buffer.
    Like(BufferId),
}

/// Memory that a program reads or writes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Buffer {
    /// Its name.
    pub name: String,
    /// The type of its elements.
    pub element: Type,
    /// What it is for.
    pub role: Role,
    /// How many elements it has.
    pub extent: Extent,
    /// Whether accesses are not checked. Then an index out of range is undefined behaviour, and launching the program
    /// is unsafe.
    pub unchecked: bool,
}

/// A parameter passed by value.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ScalarParameter {
    /// Its name.
    pub name: String,
    /// Its type.
    pub ty: Type,
}

/// Memory that the threads of one block share.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Shared {
    /// Its name.
    pub name: String,
    /// The type of its elements.
    pub element: Type,
    /// The number of elements; `None` if the launch gives the bytes, which at most one declaration may leave to it.
    pub count: Option<u64>,
    /// Whether it is not zeroed before the first thread starts. A load of an element that no thread has stored then
    /// gives any value.
    pub raw: bool,
}

/// A matrix that the lanes of a warp hold together in their registers. Every warp has its own, zero at first.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Tile {
    /// Its name.
    pub name: String,
    /// The type of its elements: `f32`, `i32` or `f64`.
    pub element: Type,
    /// Its rows, a multiple of 16.
    pub rows: u32,
    /// Its columns, a multiple of 8.
    pub columns: u32,
}

/// A variable of one type. Every thread has its own copy.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Variable {
    /// Its name, if it has one.
    pub name: Option<String>,
    /// Its type.
    pub ty: Type,
}

/// The result of an operation, or the counter of a `for`. It is never reassigned.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Value {
    /// Its name, if it has one.
    pub name: Option<String>,
    /// Its type.
    pub ty: Type,
}
