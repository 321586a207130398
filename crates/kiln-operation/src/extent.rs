//! The number of elements that an operand spans in memory.

use crate::element_type::ElementType;
use crate::error::OperationError;
use crate::operand::{OperandEffect, OperationOperand};

/// Elements at most: their bytes fit 63 bits.
const ELEMENT_LIMIT: u128 = i64::MAX as u128 / 16;

/// An operation, and the operand that is spoken of.
pub(crate) type OperandPlace = (&'static str, &'static str);

/// The elements that an operand reaches over, and how many of them it uses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Extent {
    pub(crate) reach: u64,
    used: u64,
}

impl Extent {
    /// So many elements side by side.
    pub(crate) fn dense(operand: OperandPlace, factors: &[u64]) -> Result<Self, OperationError> {
        let reach = product(factors.iter().copied()).ok_or_else(|| too_large(operand, factors, &[]))?;
        Ok(Self { reach, used: reach })
    }

    /// A vector: every `step`-th element.
    pub(crate) fn vector(operand: OperandPlace, n: u64, step: u64) -> Result<Self, OperationError> {
        if step == 0 {
            return Err(OperationError::operand(operand, "has a step of 0", "use a step of 1 or more"));
        }
        Self::of(operand, &[(n, step)])
    }

    /// Matrices of `rows` x `columns`, by columns, `leading` elements apart, `batch` of them `stride` apart.
    pub(crate) fn matrices(
        operand: OperandPlace,
        (rows, columns): (u64, u64),
        leading: u64,
        (batch, stride): (u64, u64),
    ) -> Result<Self, OperationError> {
        if leading < rows {
            let what = format!("has a leading dimension of {leading} for columns of {rows} elements");
            let hint = "use a leading dimension that holds a column";
            return Err(OperationError::operand(operand, what, hint));
        }
        let all = [(rows, 1), (columns, leading), (batch, stride)];
        // Of one matrix there is no batch to speak of.
        Self::of(operand, if batch == 1 { &all[..2] } else { &all })
    }

    /// So many elements, and the distance from one to the next, in each dimension.
    fn of(operand: OperandPlace, dimensions: &[(u64, u64)]) -> Result<Self, OperationError> {
        let counts = || dimensions.iter().map(|(count, _)| *count);
        let used = product(counts()).ok_or_else(|| too_large(operand, &counts().collect::<Vec<_>>(), &[]))?;
        let to_last = |(count, step): &(u64, u64)| u128::from(count.saturating_sub(1)) * u128::from(*step);
        let last = dimensions.iter().map(to_last).fold(0, u128::saturating_add);
        if last >= ELEMENT_LIMIT {
            let steps: Vec<u64> = dimensions.iter().map(|(_, step)| *step).collect();
            return Err(too_large(operand, &counts().collect::<Vec<_>>(), &steps));
        }
        Ok(Self { reach: last as u64 + 1, used })
    }

    /// Whether there are elements between those that are used.
    pub(crate) fn has_gaps(self) -> bool {
        self.used < self.reach
    }

    /// The operand it is, for an operation that writes all of its elements and reads them only if it says so.
    pub(crate) fn written(self, name: &'static str, element: ElementType, reads: bool) -> OperationOperand {
        let effect = match (reads, self.has_gaps()) {
            (true, _) => OperandEffect::ReadsAndWrites,
            (false, true) => OperandEffect::Writes,
            (false, false) => OperandEffect::Overwrites,
        };
        self.operand(name, element, effect)
    }

    pub(crate) fn read(self, name: &'static str, element: ElementType) -> OperationOperand {
        self.operand(name, element, OperandEffect::Reads)
    }

    pub(crate) fn operand(
        self,
        name: &'static str,
        element: ElementType,
        effect: OperandEffect,
    ) -> OperationOperand {
        OperationOperand { name, effect, bytes: self.reach * element.bytes(), alignment: element.bytes() }
    }
}

/// The product of all factors, if there is memory for so many elements.
fn product(factors: impl IntoIterator<Item = u64>) -> Option<u64> {
    let product = factors.into_iter().try_fold(1_u128, |product, factor| {
        product.checked_mul(u128::from(factor)).filter(|product| *product <= ELEMENT_LIMIT)
    });
    product.map(|product| product as u64)
}

/// Refuses sizes of 0.
pub(crate) fn check_sizes(
    operation: &'static str,
    sizes: &[(&'static str, u64)],
) -> Result<(), OperationError> {
    match sizes.iter().find(|(_, size)| *size == 0) {
        None => Ok(()),
        Some((name, _)) => {
            let what = format!("`{name}` is 0");
            Err(OperationError::shape(operation, what, "use 1 or more"))
        }
    }
}

/// Says the sizes, and the steps between elements where there are any.
fn too_large(operand: OperandPlace, sizes: &[u64], steps: &[u64]) -> OperationError {
    let list = |numbers: &[u64]| numbers.iter().map(u64::to_string).collect::<Vec<_>>().join(" x ");
    let steps = if steps.is_empty() { String::new() } else { format!(" at steps of {}", list(steps)) };
    OperationError::operand(
        operand,
        format!("has 2^59 elements or more: {}{steps}", list(sizes)),
        "use smaller sizes",
    )
}
