//! The alignment of factors in shared memory.
//!
//! Tensor cores take lines of 16 bytes from shared memory, which begin at multiples of 16. That is part of what a
//! product means there, and not left to chance: where it is not seen in the program, the program is refused.

use super::error::{VerifyError, VerifyReason};
use crate::divisibility::Divisibility;
use crate::operation::{MemoryOperand, Operand, TileOp};
use crate::program::Draft;
use crate::statement::{Block, Statement, StatementKind};

/// Bytes of a line of a matrix that a tensor core loads.
const LINE_BYTES: u64 = 16;

/// Checks a draft whose values and types are right.
pub(super) fn check(draft: &Draft) -> Result<(), VerifyError> {
    if draft.tiles.is_empty() {
        return Ok(());
    }
    block(draft, &Divisibility::new(draft), &draft.body)
}

fn block(draft: &Draft, multiples: &Divisibility, statements: &Block) -> Result<(), VerifyError> {
    statements.iter().try_for_each(|Statement { kind, location }| match kind {
        StatementKind::Tile(op @ TileOp::MultiplyAdd { .. }) => {
            product(draft, multiples, op).map_err(|reason| VerifyError::new(*location, reason))
        }
        StatementKind::If { then, otherwise, .. } => {
            block(draft, multiples, then)?;
            block(draft, multiples, otherwise)
        }
        StatementKind::For { body, .. } => block(draft, multiples, body),
        StatementKind::While { condition, body, .. } => {
            block(draft, multiples, condition)?;
            block(draft, multiples, body)
        }
        _ => Ok(()),
    })
}

fn product(draft: &Draft, multiples: &Divisibility, op: &TileOp) -> Result<(), VerifyReason> {
    for matrix in op.matrices() {
        let (MemoryOperand::Shared(_), Some(ty)) = (matrix.memory, draft.element(matrix.memory)) else {
            continue;
        };
        let elements = LINE_BYTES / ty.bytes();
        for (what, operand) in [("start", matrix.start), ("stride", matrix.stride)] {
            let is_multiple = match operand {
                Operand::Literal(literal) => literal.as_integer() % i128::from(elements) == 0,
                Operand::Value(id) => multiples.of(id).is_multiple_of(elements),
            };
            if !is_multiple {
                let what = format!("the {what} of `{}`", draft.memory_name(matrix.memory));
                return Err(VerifyReason::Alignment { what, elements });
            }
        }
    }
    Ok(())
}
