//! Tiles of a kernel that is being built.

use std::marker::PhantomData;

use crate::declaration::{Tile, TileId};
use crate::operation::{MatrixOperand, TileOp};
use crate::statement::StatementKind;

use super::element::{IntoOperand, KernelElement, KernelFactor, KernelNumber};
use super::kernel::KernelBuilder;

/// A matrix in memory: [`Mem::row_major`](crate::Mem::row_major) and [`Mem::column_major`](crate::Mem::column_major).
pub struct MatrixRef<'k, T> {
    operand: MatrixOperand,
    kernel: PhantomData<(&'k KernelBuilder, T)>,
}

impl<T> Clone for MatrixRef<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for MatrixRef<'_, T> {}

impl<T> std::fmt::Debug for MatrixRef<'_, T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}", self.operand)
    }
}

impl<T: KernelElement> MatrixRef<'_, T> {
    pub(super) fn new(operand: MatrixOperand) -> Self {
        Self { operand, kernel: PhantomData }
    }
}

/// A tile of a kernel that is being built: a matrix that the lanes of a warp hold together. All of them execute its
/// operations, with the same operands: [`TileOp`].
///
/// ```
/// use kiln_ir::{F16, Program};
///
/// // One warp multiplies 16 by 16 with 16 by 8 elements.
/// let product = Program::build("product", |k| {
///     k.block([32, 1, 1]);
///     let (a, b) = (k.input::<F16>("a"), k.input::<F16>("b"));
///     let c = k.output::<f32>("c");
///     let sum = k.tile::<f32>("sum", 16, 8);
///     sum.multiply_add(a.row_major(0, 16), b.row_major(0, 8), 16);
///     sum.store(c.row_major(0, 8));
/// })?;
/// assert!(product.to_string().contains("tile sum: f32[16, 8];"));
/// # Ok::<(), kiln_ir::VerifyError>(())
/// ```
pub struct TileVar<'k, T> {
    kernel: &'k KernelBuilder,
    id: TileId,
    ty: PhantomData<T>,
}

impl<T> Clone for TileVar<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for TileVar<'_, T> {}

impl<T> std::fmt::Debug for TileVar<'_, T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}", self.id)
    }
}

impl KernelBuilder {
    /// A tile of so many rows, a multiple of 16, and columns, a multiple of 8. Its elements are `f32`, `i32` or `f64`
    /// and zero at first.
    pub fn tile<T: KernelNumber>(&self, name: &str, rows: u32, columns: u32) -> TileVar<'_, T> {
        let mut id = TileId(0);
        self.edit(|draft| {
            id = TileId(draft.tiles.len() as u32);
            draft.tiles.push(Tile { name: name.to_owned(), element: T::TYPE, rows, columns });
        });
        TileVar { kernel: self, id, ty: PhantomData }
    }
}

impl<T: KernelNumber> TileVar<'_, T> {
    /// Sets all elements: [`TileOp::Fill`].
    #[track_caller]
    pub fn fill(self, value: impl IntoOperand<T>) {
        let value = value.operand();
        self.kernel.push(StatementKind::Tile(TileOp::Fill { tile: self.id, value }));
    }

    /// Loads all elements: [`TileOp::Load`].
    #[track_caller]
    pub fn load(self, from: MatrixRef<'_, T>) {
        self.kernel.push(StatementKind::Tile(TileOp::Load { tile: self.id, from: from.operand }));
    }

    /// Stores all elements: [`TileOp::Store`].
    #[track_caller]
    pub fn store(self, to: MatrixRef<'_, T>) {
        self.kernel.push(StatementKind::Tile(TileOp::Store { tile: self.id, to: to.operand }));
    }

    /// Adds the product of two matrices, with `depth` products for each element: [`TileOp::MultiplyAdd`].
    #[track_caller]
    pub fn multiply_add<F: KernelFactor<Sum = T>>(
        self,
        a: MatrixRef<'_, F>,
        b: MatrixRef<'_, F>,
        depth: u32,
    ) {
        let (a, b) = (a.operand, b.operand);
        self.kernel.push(StatementKind::Tile(TileOp::MultiplyAdd { tile: self.id, a, b, depth }));
    }
}
