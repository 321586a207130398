//! Findings about what a launch left in its arrays.

use super::array_addresses::Allocation;
use super::finding::KernelFinding;
use crate::note_kind::NoteKind;
use crate::npy::Array;

/// The kind of a finding about a result that was expected otherwise.
const UNEXPECTED: &str = "unexpected";

impl KernelFinding {
    /// An array that a launch left in two ways with two seeds.
    pub(crate) fn of_order(argument: usize, array: &Array, element: u64, [first, seed]: [u64; 2]) -> Self {
        let text = format!(
            "argument {argument} depends on the order of threads: element {element} differs between seeds {first} and {seed}"
        );
        let note = Self::in_words(NoteKind::Order.word(), text);
        Self { allocation: Some(at(argument, array, element)), seeds: vec![first, seed], ..note }
    }

    /// An array that a launch left otherwise than the caller says.
    pub(crate) fn of_unexpected(
        text: String,
        (argument, array, element): (usize, &Array, u64),
        next: Option<&str>,
    ) -> Self {
        let finding = Self::in_words(UNEXPECTED, text);
        Self { allocation: Some(at(argument, array, element)), next_step: next.map(str::to_owned), ..finding }
    }

    /// Whether both are about the results of one argument.
    pub(crate) fn is_of_same_result(&self, other: &Self) -> bool {
        let argument = |finding: &Self| finding.allocation.as_ref().map(|array| array.argument);
        self.kind == other.kind && argument(self) == argument(other)
    }
}

/// The place of an element.
fn at(argument: usize, array: &Array, element: u64) -> Allocation {
    let offset = element.saturating_mul(array.element.bytes());
    Allocation { argument, bytes: array.bytes.len() as u64, offset: offset.cast_signed() }
}
