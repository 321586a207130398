//! Verifies an unfinished program (draft): types, scopes, assignments, barriers, sizes.

mod body;
mod declarations;
mod error;
mod operation_types;
mod tile_alignment;
mod tile_types;
mod uniformity;

pub use error::{VerifyError, VerifyReason};

use crate::program::Draft;

/// Blocks inside each other, at most; so that nothing that walks a program runs out of stack.
pub const MAX_DEPTH: usize = 100;

/// Checks everything, or says what is wrong first.
pub(crate) fn verify(draft: &Draft) -> Result<(), VerifyError> {
    declarations::check(draft)?;
    body::check(draft)?;
    tile_alignment::check(draft)?;
    uniformity::check(draft)
}
