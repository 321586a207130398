//! Buffers and shared memory.

use std::marker::PhantomData;

use crate::declaration::Extent;
use crate::operation::{
    AtomicOp, MatrixLayout, MatrixOperand, MemoryOperand, MemoryOrder, MemoryScope, Op, Operand,
};
use crate::statement::StatementKind;

use super::element::{IntoOperand, KernelElement, KernelInteger, KernelNumber};
use super::kernel::KernelBuilder;
use super::tile::MatrixRef;
use super::value::Val;

/// A buffer or shared memory of a kernel that is being built.
///
/// Atomics are relaxed, with device scope in a buffer and block scope in shared memory. [`atomic`](Self::atomic) takes
/// both as arguments.
pub struct Mem<'k, T> {
    kernel: &'k KernelBuilder,
    pub(crate) memory: MemoryOperand,
    ty: PhantomData<T>,
}

impl<T> Clone for Mem<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Mem<'_, T> {}

impl<T> std::fmt::Debug for Mem<'_, T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}", self.memory)
    }
}

/// Atomics with one operand and the usual order.
macro_rules! atomics {
    ($($(#[$doc:meta])* $name:ident => $op:ident;)*) => {$(
        $(#[$doc])*
        #[track_caller]
        pub fn $name<I: KernelInteger>(self, index: impl IntoOperand<I>, value: impl IntoOperand<T>) -> Val<'k, T> {
            self.atomic(AtomicOp::$op, index, value, MemoryOrder::Relaxed, self.scope())
        }
    )*};
}

impl<'k, T: KernelElement> Mem<'k, T> {
    pub(crate) fn new(kernel: &'k KernelBuilder, memory: MemoryOperand) -> Self {
        Self { kernel, memory, ty: PhantomData }
    }

    /// The buffer always has this many elements. Shared memory has what it was made with.
    pub fn count(self, count: u64) -> Self {
        self.extent(Extent::Static(count))
    }

    /// The buffer has as many elements as another one.
    pub fn like<U: KernelElement>(self, other: Mem<'_, U>) -> Self {
        match other.memory {
            MemoryOperand::Buffer(id) => self.extent(Extent::Like(id)),
            MemoryOperand::Shared(_) => self,
        }
    }

    fn extent(self, extent: Extent) -> Self {
        if let MemoryOperand::Buffer(id) = self.memory {
            self.kernel.edit(|draft| {
                if let Some(buffer) = draft.buffers.get_mut(id.index()) {
                    buffer.extent = extent;
                }
            });
        }
        self
    }

    /// Accesses to the buffer are not checked: launching the program is unsafe.
    pub fn unchecked(self) -> Self {
        if let MemoryOperand::Buffer(id) = self.memory {
            self.kernel.edit(|draft| {
                if let Some(buffer) = draft.buffers.get_mut(id.index()) {
                    buffer.unchecked = true;
                }
            });
        }
        self
    }

    /// The shared memory is not set to zero before the first thread starts.
    pub fn raw(self) -> Self {
        if let MemoryOperand::Shared(id) = self.memory {
            self.kernel.edit(|draft| {
                if let Some(shared) = draft.shared.get_mut(id.index()) {
                    shared.raw = true;
                }
            });
        }
        self
    }

    /// An element: [`Op::Load`].
    #[track_caller]
    pub fn load<I: KernelInteger>(self, index: impl IntoOperand<I>) -> Val<'k, T> {
        let index = index.operand();
        self.kernel.emit(Op::Load { memory: self.memory, index })
    }

    /// Writes an element: [`StatementKind::Store`].
    #[track_caller]
    pub fn store<I: KernelInteger>(self, index: impl IntoOperand<I>, value: impl IntoOperand<T>) {
        let (index, value) = (index.operand(), value.operand());
        self.kernel.push(StatementKind::Store { memory: self.memory, index, value });
    }

    /// A matrix whose rows begin `stride` elements apart, the first one at `start`: [`MatrixLayout::RowMajor`].
    #[track_caller]
    pub fn row_major<I: KernelInteger, J: KernelInteger>(
        self,
        start: impl IntoOperand<I>,
        stride: impl IntoOperand<J>,
    ) -> MatrixRef<'k, T> {
        self.matrix(MatrixLayout::RowMajor, start.operand(), stride.operand())
    }

    /// A matrix whose columns begin `stride` elements apart, the first one at `start`: [`MatrixLayout::ColumnMajor`].
    #[track_caller]
    pub fn column_major<I: KernelInteger, J: KernelInteger>(
        self,
        start: impl IntoOperand<I>,
        stride: impl IntoOperand<J>,
    ) -> MatrixRef<'k, T> {
        self.matrix(MatrixLayout::ColumnMajor, start.operand(), stride.operand())
    }

    fn matrix(self, layout: MatrixLayout, start: Operand, stride: Operand) -> MatrixRef<'k, T> {
        MatrixRef::new(MatrixOperand { memory: self.memory, start, stride, layout })
    }

    /// How many elements there are: [`Op::Length`].
    #[track_caller]
    pub fn length(self) -> Val<'k, u64> {
        self.kernel.emit(Op::Length(self.memory))
    }

    fn scope(self) -> MemoryScope {
        match self.memory {
            MemoryOperand::Buffer(_) => MemoryScope::Device,
            MemoryOperand::Shared(_) => MemoryScope::Block,
        }
    }
}

impl<'k, T: KernelNumber> Mem<'k, T> {
    atomics! {
        /// [`AtomicOp::Add`].
        atomic_add => Add;
        /// [`AtomicOp::Min`].
        atomic_min => Min;
        /// [`AtomicOp::Max`].
        atomic_max => Max;
        /// [`AtomicOp::And`].
        atomic_and => And;
        /// [`AtomicOp::Or`].
        atomic_or => Or;
        /// [`AtomicOp::Xor`].
        atomic_xor => Xor;
        /// [`AtomicOp::Exchange`].
        atomic_exchange => Exchange;
    }

    /// [`AtomicOp::CompareExchange`].
    #[track_caller]
    pub fn atomic_compare_exchange<I: KernelInteger>(
        self,
        index: impl IntoOperand<I>,
        expected: impl IntoOperand<T>,
        value: impl IntoOperand<T>,
    ) -> Val<'k, T> {
        let (index, expected, value) = (index.operand(), expected.operand(), value.operand());
        let op = AtomicOp::CompareExchange;
        self.atomic_op(op, index, Some(expected), value, (MemoryOrder::Relaxed, self.scope()))
    }

    /// Any atomic of one operand, with its order and scope: [`Op::Atomic`].
    #[track_caller]
    pub fn atomic<I: KernelInteger>(
        self,
        op: AtomicOp,
        index: impl IntoOperand<I>,
        value: impl IntoOperand<T>,
        order: MemoryOrder,
        scope: MemoryScope,
    ) -> Val<'k, T> {
        self.atomic_op(op, index.operand(), None, value.operand(), (order, scope))
    }

    #[track_caller]
    fn atomic_op(
        self,
        op: AtomicOp,
        index: Operand,
        expected: Option<Operand>,
        value: Operand,
        (order, scope): (MemoryOrder, MemoryScope),
    ) -> Val<'k, T> {
        let memory = self.memory;
        self.kernel.emit(Op::Atomic { op, memory, index, value, expected, order, scope })
    }
}
