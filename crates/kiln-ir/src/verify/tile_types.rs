//! Shapes and types of operations on tiles.

use super::error::VerifyReason;
use super::operation_types::{access, element, expect, integer};
use crate::declaration::{Role, Tile};
use crate::operation::{Factor, MatrixOperand, Operand, TileOp};
use crate::program::Draft;
use crate::scalar_type::Type;

/// The largest depth of one product.
const MAX_DEPTH: u32 = 256;

/// Checks an operation whose operands are in scope.
pub(super) fn check(draft: &Draft, op: &TileOp) -> Result<(), VerifyReason> {
    let Some(tile) = draft.tiles.get(op.tile().index()) else {
        return Err(VerifyReason::Scope { what: format!("tile {}", op.tile().0) });
    };
    match op {
        TileOp::Fill { value, .. } => expect(draft, "the value", *value, tile.element),
        TileOp::Load { from, .. } => {
            matrix(draft, from, tile.element)?;
            access(draft, from.memory, "read", Role::is_readable)
        }
        TileOp::Store { to, .. } => {
            matrix(draft, to, tile.element)?;
            access(draft, to.memory, "written", Role::is_writable)?;
            lines_are_apart(draft, to, tile)
        }
        TileOp::MultiplyAdd { a, b, depth, .. } => {
            let ty = element(draft, a.memory)?;
            let Some(factor) = Factor::of(ty) else {
                return Err(VerifyReason::NoSuchOperation { operation: op.word().to_owned(), ty });
            };
            if factor.sum != tile.element {
                let what = format!("tile `{}`, which adds products of {ty},", tile.name);
                return Err(VerifyReason::Type {
                    what,
                    expected: factor.sum.to_string(),
                    found: tile.element,
                });
            }
            for one in [a, b] {
                matrix(draft, one, ty)?;
                access(draft, one.memory, "read", Role::is_readable)?;
            }
            if *depth == 0 || depth % factor.step != 0 || *depth > MAX_DEPTH {
                let rule = format!("must be a multiple of {} for {ty}, and at most {MAX_DEPTH}", factor.step);
                let what = "the depth of the product".to_owned();
                return Err(VerifyReason::Size { what, size: (*depth).into(), rule });
            }
            Ok(())
        }
    }
}

/// A matrix of elements of a type.
fn matrix(draft: &Draft, matrix: &MatrixOperand, ty: Type) -> Result<(), VerifyReason> {
    let found = element(draft, matrix.memory)?;
    let name = draft.memory_name(matrix.memory);
    if found != ty {
        let what = format!("the element of `{name}`");
        return Err(VerifyReason::Type { what, expected: ty.to_string(), found });
    }
    integer(draft, &format!("the start of `{name}`"), matrix.start)?;
    integer(draft, &format!("the stride of `{name}`"), matrix.stride).map(drop)
}

/// Where lines overlap, two lanes store to one element.
fn lines_are_apart(draft: &Draft, matrix: &MatrixOperand, tile: &Tile) -> Result<(), VerifyReason> {
    let Operand::Literal(stride) = matrix.stride else { return Ok(()) };
    let [_, length] = matrix.lines(tile.rows, tile.columns);
    if stride.as_integer().unsigned_abs() >= u128::from(length) {
        return Ok(());
    }
    Err(VerifyReason::Size {
        what: format!("the stride of `{}`", draft.memory_name(matrix.memory)),
        size: stride.as_integer().unsigned_abs() as u64,
        rule: format!("must be at least {length} in a store, or its lines overlap"),
    })
}
