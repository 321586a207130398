//! Operations of BLAS on a matrix and vectors, for `f32` and `f64`.

use crate::element_type::ElementType;
use crate::error::OperationError;
use crate::extent::{Extent, check_sizes};
use crate::field::operation;
use crate::level1::check_element;
use crate::operand::OperationOperand;

operation! {
    /// `y = alpha op(A) x`, or `y = alpha op(A) x + beta y`.
    Gemv = "blas.gemv" {
        /// Of the matrix and the vectors.
        element: ElementType,
        /// Rows of `A` as it is stored.
        m: u64,
        /// Columns of `A` as it is stored.
        n: u64,
        /// Whether `op(A)` is the transpose.
        transposed: bool,
        /// Distance between columns of `A`.
        leading: u64,
        /// Distance between elements of `x`.
        x_step: u64,
        /// Distance between elements of `y`.
        y_step: u64,
        /// Whether `beta y` is added.
        accumulate: bool,
    }
}

operation! {
    /// `A = alpha x yᵀ + A`.
    Ger = "blas.ger" {
        /// Of the matrix and the vectors.
        element: ElementType,
        /// Rows of `A`, elements of `x`.
        m: u64,
        /// Columns of `A`, elements of `y`.
        n: u64,
        /// Distance between columns of `A`.
        leading: u64,
        /// Distance between elements of `x`.
        x_step: u64,
        /// Distance between elements of `y`.
        y_step: u64,
    }
}

impl Gemv {
    /// Elements of `x` and of `y`.
    pub fn lengths(&self) -> (u64, u64) {
        if self.transposed { (self.m, self.n) } else { (self.n, self.m) }
    }

    pub(crate) fn operands(&self) -> Result<Vec<OperationOperand>, OperationError> {
        check_element(Self::NAME, self.element)?;
        check_sizes(Self::NAME, &[("m", self.m), ("n", self.n)])?;
        let (x, y) = self.lengths();
        let mut operands = vec![
            Extent::matrices((Self::NAME, "a"), (self.m, self.n), self.leading, (1, 0))?
                .read("a", self.element),
            Extent::vector((Self::NAME, "x"), x, self.x_step)?.read("x", self.element),
            Extent::vector((Self::NAME, "y"), y, self.y_step)?.written("y", self.element, self.accumulate),
            OperationOperand::scalar("alpha"),
        ];
        operands.extend(self.accumulate.then(|| OperationOperand::scalar("beta")));
        Ok(operands)
    }
}

impl Ger {
    pub(crate) fn operands(&self) -> Result<Vec<OperationOperand>, OperationError> {
        check_element(Self::NAME, self.element)?;
        check_sizes(Self::NAME, &[("m", self.m), ("n", self.n)])?;
        Ok(vec![
            Extent::vector((Self::NAME, "x"), self.m, self.x_step)?.read("x", self.element),
            Extent::vector((Self::NAME, "y"), self.n, self.y_step)?.read("y", self.element),
            Extent::matrices((Self::NAME, "a"), (self.m, self.n), self.leading, (1, 0))?.written(
                "a",
                self.element,
                true,
            ),
            OperationOperand::scalar("alpha"),
        ])
    }
}
