//! Buffers and shared memory.

use std::marker::PhantomData;

use crate::declaration::Extent;
use crate::operation::{AtomicOp, Memory, Op, Operand, Order, Scope};
use crate::statement::StatementKind;

use super::element::{Element, Integer, Number, Term};
use super::kernel::Kernel;
use super::val::Val;

/// A buffer or shared memory of a kernel that is being built.
///
/// Atomics are relaxed, with device scope in a buffer and block scope in shared memory. [`atomic`](Self::atomic) takes
/// both as arguments.
pub struct Mem<'k, T> {
    kernel: &'k Kernel,
    pub(crate) memory: Memory,
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
        pub fn $name<I: Integer>(self, index: impl Term<I>, value: impl Term<T>) -> Val<'k, T> {
            self.atomic(AtomicOp::$op, index, value, Order::Relaxed, self.scope())
        }
    )*};
}

impl<'k, T: Element> Mem<'k, T> {
    pub(crate) fn new(kernel: &'k Kernel, memory: Memory) -> Self {
        Self { kernel, memory, ty: PhantomData }
    }

    /// The buffer always has this many elements. Shared memory has what it was made with.
    pub fn count(self, count: u64) -> Self {
        self.extent(Extent::Static(count))
    }

    /// The buffer has as many elements as another one.
    pub fn like<U: Element>(self, other: Mem<'_, U>) -> Self {
        match other.memory {
            Memory::Buffer(id) => self.extent(Extent::Like(id)),
            Memory::Shared(_) => self,
        }
    }

    fn extent(self, extent: Extent) -> Self {
        if let Memory::Buffer(id) = self.memory {
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
        if let Memory::Buffer(id) = self.memory {
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
        if let Memory::Shared(id) = self.memory {
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
    pub fn load<I: Integer>(self, index: impl Term<I>) -> Val<'k, T> {
        let index = index.operand();
        self.kernel.emit(Op::Load { memory: self.memory, index })
    }

    /// Writes an element: [`StatementKind::Store`].
    #[track_caller]
    pub fn store<I: Integer>(self, index: impl Term<I>, value: impl Term<T>) {
        let (index, value) = (index.operand(), value.operand());
        self.kernel.push(StatementKind::Store { memory: self.memory, index, value });
    }

    /// How many elements there are: [`Op::Length`].
    #[track_caller]
    pub fn length(self) -> Val<'k, u64> {
        self.kernel.emit(Op::Length(self.memory))
    }

    fn scope(self) -> Scope {
        match self.memory {
            Memory::Buffer(_) => Scope::Device,
            Memory::Shared(_) => Scope::Block,
        }
    }
}

impl<'k, T: Number> Mem<'k, T> {
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
    pub fn atomic_compare_exchange<I: Integer>(
        self,
        index: impl Term<I>,
        expected: impl Term<T>,
        value: impl Term<T>,
    ) -> Val<'k, T> {
        let (index, expected, value) = (index.operand(), expected.operand(), value.operand());
        let op = AtomicOp::CompareExchange;
        self.atomic_op(op, index, Some(expected), value, (Order::Relaxed, self.scope()))
    }

    /// Any atomic of one operand, with its order and scope: [`Op::Atomic`].
    #[track_caller]
    pub fn atomic<I: Integer>(
        self,
        op: AtomicOp,
        index: impl Term<I>,
        value: impl Term<T>,
        order: Order,
        scope: Scope,
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
        (order, scope): (Order, Scope),
    ) -> Val<'k, T> {
        let memory = self.memory;
        self.kernel.emit(Op::Atomic { op, memory, index, value, expected, order, scope })
    }
}
