//! What each call compares of an operand.

use kiln_driver::Access;
use kiln_operation::{OperandEffect, OperationOperand};

/// An operand without its name: few bytes, because every call reads those of all its operands.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OperandFit {
    /// Bytes from its address to the end of its last element; 0 for a scalar.
    pub(crate) bytes: u64,
    /// Bits that its address does not have. Alignments are powers of two.
    pub(crate) alignment_mask: u64,
    pub(crate) effect: OperandEffect,
}

impl OperandFit {
    /// What is needed of an operand at each call.
    pub(crate) fn of(operand: &OperationOperand) -> Self {
        let alignment_mask = operand.alignment.max(1) - 1;
        Self { bytes: operand.bytes, alignment_mask, effect: operand.effect }
    }

    /// How a launch uses it. What lies in gaps stays, so that a buffer with gaps is not overwritten.
    #[inline]
    pub(crate) fn access(&self) -> Access {
        match self.effect {
            OperandEffect::Scalar | OperandEffect::Reads => Access::Read,
            OperandEffect::Overwrites => Access::Write,
            OperandEffect::Writes | OperandEffect::ReadsAndWrites => Access::ReadWrite,
        }
    }
}
