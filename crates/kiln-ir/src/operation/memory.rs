//! Memory and what atomics do to it.

use crate::declaration::{BufferId, SharedId};
use crate::scalar_type::Type;
use crate::words::words;

/// What has elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Memory {
    /// A buffer in global memory.
    Buffer(BufferId),
    /// Shared memory of the block.
    Shared(SharedId),
}

words! {
    /// What an atomic makes of an element.
    pub enum AtomicOp {
        /// Adds; integers wrap. An `f32` may treat subnormal operands and results as zero.
        Add = "atomic_add",
        /// Keeps the smaller one. Only for integers.
        Min = "atomic_min",
        /// Keeps the larger one. Only for integers.
        Max = "atomic_max",
        /// Keeps the bits both have. Only for integers.
        And = "atomic_and",
        /// Adds the bits of the operand. Only for integers.
        Or = "atomic_or",
        /// Flips the bits of the operand. Only for integers.
        Xor = "atomic_xor",
        /// Writes the operand.
        Exchange = "atomic_exchange",
        /// Writes the operand if what is there has the same bits as what is expected.
        CompareExchange = "atomic_compare_exchange",
    }
}

impl AtomicOp {
    /// Whether it can work on a type. All of them work on the integers of 32 and 64 bits; addition and exchange also on
    /// `f32` and `f64`.
    pub const fn accepts(self, ty: Type) -> bool {
        match ty {
            Type::U32 | Type::U64 | Type::I32 | Type::I64 => true,
            Type::F32 | Type::F64 => matches!(self, Self::Add | Self::Exchange),
            _ => false,
        }
    }
}

words! {
    /// What an atomic orders besides itself.
    pub enum Order {
        /// Nothing.
        Relaxed = "relaxed",
        /// What the thread does later stays behind it.
        Acquire = "acquire",
        /// What the thread did earlier stays before it.
        Release = "release",
        /// Both.
        AcqRel = "acq_rel",
        /// Both, and all such operations have one order that all threads agree on.
        SeqCst = "seq_cst",
    }
}

words! {
    /// The threads for which an atomic or a fence orders memory.
    pub enum Scope {
        /// Those of the block.
        Block = "block",
        /// Those of the device.
        Device = "device",
        /// Those of every device, and the host.
        System = "system",
    }
}
