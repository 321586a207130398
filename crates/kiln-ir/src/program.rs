//! Programs: kernels that were verified.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use crate::builder::KernelBuilder;
use crate::declaration::{
    Buffer, BufferId, Extent, ScalarParameter, Shared, Tile, TileId, Value, ValueId, Variable,
};
use crate::operation::{MemoryOperand, Operand};
use crate::scalar_type::Type;
use crate::statement::Block;
use crate::verify::{VerifyError, verify};

/// A kernel that was not verified yet.
///
/// Front ends fill one in and pass it to [`Program::new`]. Kernels that are written by hand use [`Program::build`] or
/// the text form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Draft {
    /// The name of the kernel.
    pub name: String,
    /// Parameters in global memory.
    pub buffers: Vec<Buffer>,
    /// Parameters passed by value.
    pub scalars: Vec<ScalarParameter>,
    /// Shared memory.
    pub shared: Vec<Shared>,
    /// Matrices in the registers of each warp.
    pub tiles: Vec<Tile>,
    /// All variables; the scope of each begins at its `Declare` statement.
    pub variables: Vec<Variable>,
    /// All values, in the order in which the statements define them.
    pub values: Vec<Value>,
    /// Threads of a block in each dimension.
    pub block: [u32; 3],
    /// The buffer that a launch without a grid covers with one thread for each element.
    pub over: Option<BufferId>,
    /// Whether `f32` operations treat subnormal operands and results as zero.
    pub flush: bool,
    /// What each thread does.
    pub body: Block,
}

/// A verified kernel.
///
/// Cloning is cheap. A program dereferences to its [`Draft`], and its `Display` is the text form.
///
/// ```
/// use kiln_ir::Program;
///
/// let saxpy = Program::build("saxpy", |k| {
///     let a = k.scalar::<f32>("a");
///     let x = k.input::<f32>("x");
///     let y = k.in_out::<f32>("y");
///     k.over(y);
///     let i = k.global_x();
///     y.store(i, a * x.load(i) + y.load(i));
/// })?;
/// assert_eq!(saxpy.buffers.len(), 2);
/// # Ok::<(), kiln_ir::VerifyError>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Program {
    draft: Arc<Draft>,
}

impl Draft {
    /// A kernel that does nothing yet: blocks of 256 threads, no parameters.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            buffers: Vec::new(),
            scalars: Vec::new(),
            shared: Vec::new(),
            tiles: Vec::new(),
            variables: Vec::new(),
            values: Vec::new(),
            block: [256, 1, 1],
            over: None,
            flush: false,
            body: Vec::new(),
        }
    }

    /// The type of an operand; `None` if it names a value that does not exist.
    pub fn type_of(&self, operand: Operand) -> Option<Type> {
        match operand {
            Operand::Literal(literal) => Some(literal.ty()),
            Operand::Value(ValueId(id)) => self.values.get(id as usize).map(|value| value.ty),
        }
    }

    /// The number of elements of a buffer, if it or the buffer it is declared like has a fixed count.
    pub(crate) fn known_count(&self, id: BufferId) -> Option<u64> {
        let extent = |id: BufferId| self.buffers.get(id.index()).map(|buffer| buffer.extent);
        match extent(id)? {
            Extent::Static(count) => Some(count),
            Extent::Like(other) => match extent(other)? {
                Extent::Static(count) => Some(count),
                _ => None,
            },
            Extent::Dynamic => None,
        }
    }

    /// The type of the elements; `None` if there is no such memory.
    pub fn element(&self, memory: MemoryOperand) -> Option<Type> {
        match memory {
            MemoryOperand::Buffer(id) => self.buffers.get(id.index()).map(|buffer| buffer.element),
            MemoryOperand::Shared(id) => self.shared.get(id.index()).map(|shared| shared.element),
        }
    }

    /// The name of a buffer or of shared memory; empty if the id is invalid.
    pub fn memory_name(&self, memory: MemoryOperand) -> &str {
        match memory {
            MemoryOperand::Buffer(id) => self.buffers.get(id.index()).map_or("", |buffer| &buffer.name),
            MemoryOperand::Shared(id) => self.shared.get(id.index()).map_or("", |shared| &shared.name),
        }
    }

    /// The name of a tile; empty if the id is invalid.
    pub fn tile_name(&self, tile: TileId) -> &str {
        self.tiles.get(tile.index()).map_or("", |tile| &tile.name)
    }

    /// Whether every access is checked, so that launching it is safe.
    pub fn is_checked(&self) -> bool {
        self.buffers.iter().all(|buffer| !buffer.unchecked)
    }

    /// The buffer with a name.
    pub fn buffer_named(&self, name: &str) -> Option<BufferId> {
        (0..).zip(&self.buffers).find(|(_, buffer)| buffer.name == name).map(|(id, _)| BufferId(id))
    }
}

impl Program {
    /// Verifies a draft.
    ///
    /// # Errors
    /// What is wrong with it, and where.
    pub fn new(draft: Draft) -> Result<Self, VerifyError> {
        verify(&draft)?;
        Ok(Self { draft: Arc::new(draft) })
    }

    /// A program that a rewriting of this crate made of a verified one; it needs no second verification.
    pub(crate) fn trusted(draft: Draft) -> Self {
        Self { draft: Arc::new(draft) }
    }

    /// Builds a kernel in Rust: the closure runs once and every call on its argument adds to the program.
    ///
    /// # Errors
    /// What Rust's types cannot rule out, with the line of Rust code.
    pub fn build(name: impl Into<String>, write: impl FnOnce(&KernelBuilder)) -> Result<Self, VerifyError> {
        let kernel = KernelBuilder::new(name);
        write(&kernel);
        Self::new(kernel.into_draft())
    }

    /// The same program with another block size.
    ///
    /// # Errors
    /// If a block cannot have that size.
    pub fn with_block(&self, threads: [u32; 3]) -> Result<Self, VerifyError> {
        Self::new(Draft { block: threads, ..(**self).clone() })
    }

    /// The draft again, to change it.
    pub fn into_draft(self) -> Draft {
        Arc::unwrap_or_clone(self.draft)
    }
}

impl Deref for Program {
    type Target = Draft;

    fn deref(&self) -> &Draft {
        &self.draft
    }
}

impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Program").field("name", &self.name).finish_non_exhaustive()
    }
}
