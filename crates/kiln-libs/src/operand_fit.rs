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
    /// Whether its buffer may not be longer.
    is_exact: bool,
}

/// Whether a buffer has exactly the elements of its operand. One that is given with its sizes, as a matrix is, may be longer; those of other vectors may not.
pub(crate) fn is_exact(operand: &str) -> bool {
    matches!(operand, "pivots" | "tau" | "values" | "s" | "a_scale" | "b_scale")
}

impl OperandFit {
    /// What is needed of an operand at each call.
    pub(crate) fn of(operand: &OperationOperand) -> Self {
        let alignment_mask = operand.alignment.max(1) - 1;
        let is_exact = is_exact(operand.name);
        Self { bytes: operand.bytes, alignment_mask, effect: operand.effect, is_exact }
    }

    /// Whether its buffer can have so many bytes.
    #[inline]
    pub(crate) fn takes(&self, bytes: u64) -> bool {
        if self.is_exact { bytes == self.bytes } else { bytes >= self.bytes }
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
