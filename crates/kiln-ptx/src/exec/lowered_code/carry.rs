//! Steps with the carry flag.

use super::{Reg, Source};
use crate::ScalarType;

/// Arithmetic with the carry flag.
pub(crate) struct Carry {
    pub(crate) kind: CarryKind,
    pub(crate) ty: ScalarType,
    /// Whether the carry of the step before is added.
    pub(crate) reads: bool,
    /// Whether the carry out is kept.
    pub(crate) writes: bool,
    pub(crate) to: Reg,
    pub(crate) from: [Source; 3],
}

/// What is done with the carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CarryKind {
    Add,
    Subtract,
    /// The lower or upper half of a product is added.
    MultiplyAdd {
        high: bool,
    },
}
