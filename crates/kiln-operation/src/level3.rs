//! Operations of BLAS on triangular and symmetric matrices, and sums of matrices, for `f32` and `f64`.

use crate::element_type::ElementType;
use crate::error::OperationError;
use crate::extent::{Extent, check_sizes};
use crate::field::{operation, words};
use crate::level1::check_element;
use crate::operand::{OperandEffect, OperationOperand};

words! {
    /// Which triangle of a matrix is used, as it is stored by columns.
    Triangle {
        /// On and above the diagonal.
        Upper = "upper",
        /// On and below the diagonal.
        Lower = "lower",
    }
}

words! {
    /// On which side of the unknown a triangular matrix stands.
    Side {
        /// `op(A) X = alpha B`.
        Left = "left",
        /// `X op(A) = alpha B`.
        Right = "right",
    }
}

words! {
    /// What the diagonal of a triangular matrix holds.
    Diagonal {
        /// The elements that are stored.
        Stored = "stored",
        /// Ones; what is stored is not read.
        Unit = "unit",
    }
}

operation! {
    /// `C = alpha op(A) op(A)ᵀ`, or with `+ beta C`, of which one triangle is computed.
    Syrk = "blas.syrk" {
        /// Of both matrices.
        element: ElementType,
        /// Rows and columns of `C`.
        n: u64,
        /// Columns of `op(A)`.
        k: u64,
        /// The triangle of `C`.
        triangle: Triangle,
        /// Whether `op(A)` is the transpose of what is stored.
        transposed: bool,
        /// Distance between columns of `A`.
        a_leading: u64,
        /// Distance between columns of `C`.
        c_leading: u64,
        /// Whether `beta C` is added.
        accumulate: bool,
    }
}

operation! {
    /// Solves `op(A) X = alpha B` or `X op(A) = alpha B` for `X`, which replaces `B`; `A` is triangular.
    Trsm = "blas.trsm" {
        /// Of both matrices.
        element: ElementType,
        /// Rows of `B`.
        m: u64,
        /// Columns of `B`.
        n: u64,
        /// On which side `A` stands.
        side: Side,
        /// The triangle of `A`.
        triangle: Triangle,
        /// Whether `op(A)` is the transpose.
        transposed: bool,
        /// What the diagonal of `A` holds.
        diagonal: Diagonal,
        /// Distance between columns of `A`.
        a_leading: u64,
        /// Distance between columns of `B`.
        b_leading: u64,
    }
}

operation! {
    /// `C = alpha op(A)`, or with `+ beta op(B)`.
    Geam = "blas.geam" {
        /// Of all matrices.
        element: ElementType,
        /// Rows of `C`.
        m: u64,
        /// Columns of `C`.
        n: u64,
        /// Whether `op(A)` is the transpose of what is stored.
        a_transposed: bool,
        /// Distance between columns of `A`.
        a_leading: u64,
        /// Whether `beta op(B)` is added.
        has_b: bool,
        /// Whether `op(B)` is the transpose of what is stored; false where there is none.
        b_transposed: bool,
        /// Distance between columns of `B`; 0 where there is none.
        b_leading: u64,
        /// Distance between columns of `C`.
        c_leading: u64,
    }
}

operation! {
    /// `C = alpha A B` or `C = alpha B A`, or with `+ beta C`, where `A` is symmetric and one triangle of it is read.
    Symm = "blas.symm" {
        /// Of all matrices.
        element: ElementType,
        /// Rows of `B` and `C`.
        m: u64,
        /// Columns of `B` and `C`.
        n: u64,
        /// On which side of `B` the matrix `A` stands.
        side: Side,
        /// The triangle of `A`.
        triangle: Triangle,
        /// Distance between columns of `A`.
        a_leading: u64,
        /// Distance between columns of `B`.
        b_leading: u64,
        /// Distance between columns of `C`.
        c_leading: u64,
        /// Whether `beta C` is added.
        accumulate: bool,
    }
}

operation! {
    /// `C = alpha op(A) B` or `C = alpha B op(A)`; `A` is triangular.
    Trmm = "blas.trmm" {
        /// Of all matrices.
        element: ElementType,
        /// Rows of `B` and `C`.
        m: u64,
        /// Columns of `B` and `C`.
        n: u64,
        /// On which side of `B` the matrix `A` stands.
        side: Side,
        /// The triangle of `A`.
        triangle: Triangle,
        /// Whether `op(A)` is the transpose.
        transposed: bool,
        /// What the diagonal of `A` holds.
        diagonal: Diagonal,
        /// Distance between columns of `A`.
        a_leading: u64,
        /// Distance between columns of `B`.
        b_leading: u64,
        /// Distance between columns of `C`.
        c_leading: u64,
    }
}

impl Side {
    /// Rows and columns of the square matrix on this side of one with `m` rows and `n` columns.
    pub fn order(self, m: u64, n: u64) -> u64 {
        match self {
            Self::Left => m,
            Self::Right => n,
        }
    }
}

impl Geam {
    /// Rows and columns of a matrix as it is stored.
    pub fn stored(&self, transposed: bool) -> (u64, u64) {
        if transposed { (self.n, self.m) } else { (self.m, self.n) }
    }

    pub(crate) fn operands(&self) -> Result<Vec<OperationOperand>, OperationError> {
        check_element(Self::NAME, self.element)?;
        check_sizes(Self::NAME, &[("m", self.m), ("n", self.n)])?;
        if !self.has_b && (self.b_transposed || self.b_leading != 0) {
            let what = format!("no `b`, but b_transposed={} b_leading={}", self.b_transposed, self.b_leading);
            return Err(OperationError::shape(Self::NAME, what, "use false and 0 where there is none"));
        }
        let matrix = |name, stored, leading| Extent::matrices((Self::NAME, name), stored, leading, (1, 0));
        let mut operands =
            vec![matrix("a", self.stored(self.a_transposed), self.a_leading)?.read("a", self.element)];
        if self.has_b {
            operands
                .push(matrix("b", self.stored(self.b_transposed), self.b_leading)?.read("b", self.element));
        }
        operands.push(matrix("c", (self.m, self.n), self.c_leading)?.written("c", self.element, false));
        operands.push(OperationOperand::scalar("alpha"));
        operands.extend(self.has_b.then(|| OperationOperand::scalar("beta")));
        Ok(operands)
    }
}

impl Symm {
    /// Rows and columns of `A`.
    pub fn order(&self) -> u64 {
        self.side.order(self.m, self.n)
    }

    pub(crate) fn operands(&self) -> Result<Vec<OperationOperand>, OperationError> {
        check_element(Self::NAME, self.element)?;
        check_sizes(Self::NAME, &[("m", self.m), ("n", self.n)])?;
        let order = self.order();
        let matrix = |name, stored, leading| Extent::matrices((Self::NAME, name), stored, leading, (1, 0));
        let mut operands = vec![
            matrix("a", (order, order), self.a_leading)?.read("a", self.element),
            matrix("b", (self.m, self.n), self.b_leading)?.read("b", self.element),
            matrix("c", (self.m, self.n), self.c_leading)?.written("c", self.element, self.accumulate),
            OperationOperand::scalar("alpha"),
        ];
        operands.extend(self.accumulate.then(|| OperationOperand::scalar("beta")));
        Ok(operands)
    }
}

impl Trmm {
    /// Rows and columns of `A`.
    pub fn order(&self) -> u64 {
        self.side.order(self.m, self.n)
    }

    pub(crate) fn operands(&self) -> Result<Vec<OperationOperand>, OperationError> {
        check_element(Self::NAME, self.element)?;
        check_sizes(Self::NAME, &[("m", self.m), ("n", self.n)])?;
        let order = self.order();
        let matrix = |name, stored, leading| Extent::matrices((Self::NAME, name), stored, leading, (1, 0));
        Ok(vec![
            matrix("a", (order, order), self.a_leading)?.read("a", self.element),
            matrix("b", (self.m, self.n), self.b_leading)?.read("b", self.element),
            matrix("c", (self.m, self.n), self.c_leading)?.written("c", self.element, false),
            OperationOperand::scalar("alpha"),
        ])
    }
}

impl Syrk {
    /// Rows and columns of `A` as it is stored.
    pub fn stored(&self) -> (u64, u64) {
        if self.transposed { (self.k, self.n) } else { (self.n, self.k) }
    }

    pub(crate) fn operands(&self) -> Result<Vec<OperationOperand>, OperationError> {
        check_element(Self::NAME, self.element)?;
        check_sizes(Self::NAME, &[("n", self.n), ("k", self.k)])?;
        let c = Extent::matrices((Self::NAME, "c"), (self.n, self.n), self.c_leading, (1, 0))?;
        let effect = if self.accumulate { OperandEffect::ReadsAndWrites } else { OperandEffect::Writes };
        let mut operands = vec![
            Extent::matrices((Self::NAME, "a"), self.stored(), self.a_leading, (1, 0))?
                .read("a", self.element),
            c.operand("c", self.element, effect),
            OperationOperand::scalar("alpha"),
        ];
        operands.extend(self.accumulate.then(|| OperationOperand::scalar("beta")));
        Ok(operands)
    }
}

impl Trsm {
    /// Rows and columns of `A`.
    pub fn order(&self) -> u64 {
        self.side.order(self.m, self.n)
    }

    pub(crate) fn operands(&self) -> Result<Vec<OperationOperand>, OperationError> {
        check_element(Self::NAME, self.element)?;
        check_sizes(Self::NAME, &[("m", self.m), ("n", self.n)])?;
        let order = self.order();
        Ok(vec![
            Extent::matrices((Self::NAME, "a"), (order, order), self.a_leading, (1, 0))?
                .read("a", self.element),
            Extent::matrices((Self::NAME, "b"), (self.m, self.n), self.b_leading, (1, 0))?.written(
                "b",
                self.element,
                true,
            ),
            OperationOperand::scalar("alpha"),
        ])
    }
}
