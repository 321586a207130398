//! Loads, stores and atomics.

use crate::declaration::{BufferId, SharedId};
use crate::scalar_type::Type;
use crate::word_enum::word_enum;

/// A buffer or shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MemoryOperand {
    /// A buffer in global memory.
    Buffer(BufferId),
    /// Shared memory of the block.
    Shared(SharedId),
}

word_enum! {
    /// How an atomic updates an element.
    pub enum AtomicOp {
        /// Adds; integers wrap. An `f32` may treat subnormal operands and results as zero.
        Add = "atomic_add",
        /// Stores the smaller of element and operand. Only for integers.
        Min = "atomic_min",
        /// Stores the larger of element and operand. Only for integers.
        Max = "atomic_max",
        /// Stores the bitwise and. Only for integers.
        And = "atomic_and",
        /// Stores the bitwise or. Only for integers.
        Or = "atomic_or",
        /// Stores the bitwise exclusive or. Only for integers.
        Xor = "atomic_xor",
        /// Stores the operand.
        Exchange = "atomic_exchange",
        /// Stores the operand if the element has the same bits as the expected value.
        CompareExchange = "atomic_compare_exchange",
    }
}

impl AtomicOp {
    /// Whether it can work on a type. All work on integers of 32 and 64 bits, addition and exchange also on `f32` and
    /// `f64`.
    pub const fn accepts(self, ty: Type) -> bool {
        match ty {
            Type::U32 | Type::U64 | Type::I32 | Type::I64 => true,
            Type::F32 | Type::F64 => matches!(self, Self::Add | Self::Exchange),
            _ => false,
        }
    }
}

word_enum! {
    /// The memory order of an atomic.
    pub enum MemoryOrder {
        /// Nothing.
        Relaxed = "relaxed",
        /// Later accesses of the thread stay after it.
        Acquire = "acquire",
        /// Earlier accesses of the thread stay before it.
        Release = "release",
        /// Both.
        AcqRel = "acq_rel",
        /// Both, and all threads see all such operations in one order.
        SeqCst = "seq_cst",
    }
}

word_enum! {
    /// The threads for which an atomic or a fence orders memory.
    pub enum MemoryScope {
        /// The block.
        Block = "block",
        /// The device.
        Device = "device",
        /// All devices and the host.
        System = "system",
    }
}
