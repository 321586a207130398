//! The operands of an operation: the arguments of its launch.

/// Bytes of an argument in the packed arguments.
pub const ARGUMENT_BYTES: u32 = 8;

/// One argument of an operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OperationOperand {
    /// Its name in messages.
    pub name: &'static str,
    /// What the operation does with it.
    pub effect: OperandEffect,
    /// Bytes from its address to the end of its last element; 0 for a scalar.
    pub bytes: u64,
    /// Bytes that its address is a multiple of; 1 for a scalar.
    pub alignment: u64,
}

/// What an operation does with an operand.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum OperandEffect {
    /// A scalar by value, as `f64`.
    Scalar,
    /// Memory that is read.
    Reads,
    /// Memory of which every byte is written, and none is read before that.
    Overwrites,
    /// Memory that is written, with gaps that keep what they hold.
    Writes,
    /// Memory that is read and written.
    ReadsAndWrites,
}

impl OperandEffect {
    /// Whether it is memory.
    pub fn is_memory(self) -> bool {
        self != Self::Scalar
    }

    /// Whether it is memory that changes.
    pub fn changes(self) -> bool {
        matches!(self, Self::Overwrites | Self::Writes | Self::ReadsAndWrites)
    }
}

impl OperationOperand {
    pub(crate) fn scalar(name: &'static str) -> Self {
        Self { name, effect: OperandEffect::Scalar, bytes: 0, alignment: 1 }
    }
}
