//! Factorisations of a matrix and the systems of equations that they solve, for `f32` and `f64`.

use crate::element_type::ElementType;
use crate::error::OperationError;
use crate::extent::{Extent, OperandPlace, check_sizes};
use crate::field::operation;
use crate::level1::check_element;
use crate::level3::{Side, Triangle};
use crate::operand::{OperandEffect, OperationOperand};

operation! {
    /// The Cholesky factor of a symmetric positive definite matrix: `A = L Lᵀ` or `A = Uᵀ U`. The factor replaces the triangle that was read; the
    /// other triangle is neither read nor written. The info word is 0, or the order of the first leading minor that is not positive.
    Potrf = "solve.potrf" {
        /// Of the matrix.
        element: ElementType,
        /// Rows and columns of `A`.
        n: u64,
        /// The triangle that is read and replaced.
        triangle: Triangle,
        /// Distance between columns of `A`.
        leading: u64,
    }
}

operation! {
    /// Solves `A X = B` with the Cholesky factor of `A`. `X` replaces `B`.
    Potrs = "solve.potrs" {
        /// Of both matrices.
        element: ElementType,
        /// Rows and columns of `A`, rows of `B`.
        n: u64,
        /// Columns of `B`.
        columns: u64,
        /// The triangle that holds the factor.
        triangle: Triangle,
        /// Distance between columns of `A`.
        a_leading: u64,
        /// Distance between columns of `B`.
        b_leading: u64,
    }
}

operation! {
    /// `P A = L U` with partial pivoting. The factors replace `A`; the ones on the diagonal of `L` are not stored. Pivots are `i64`: row `i` was
    /// exchanged with row `pivots[i] - 1`. The info word is 0, or the place of the first zero on the diagonal of `U`, counted from 1.
    Getrf = "solve.getrf" {
        /// Of the matrix.
        element: ElementType,
        /// Rows of `A`.
        m: u64,
        /// Columns of `A`.
        n: u64,
        /// Distance between columns of `A`.
        leading: u64,
    }
}

operation! {
    /// Solves `op(A) X = B` with the factors and pivots of `A`. `X` replaces `B`.
    Getrs = "solve.getrs" {
        /// Of both matrices.
        element: ElementType,
        /// Rows and columns of `A`, rows of `B`.
        n: u64,
        /// Columns of `B`.
        columns: u64,
        /// Whether `op(A)` is the transpose.
        transposed: bool,
        /// Distance between columns of `A`.
        a_leading: u64,
        /// Distance between columns of `B`.
        b_leading: u64,
    }
}

operation! {
    /// `A = Q R`. `R` replaces the upper triangle of `A`; below it, and in `tau`, are the Householder vectors whose product is `Q`.
    Geqrf = "solve.geqrf" {
        /// Of the matrix and `tau`.
        element: ElementType,
        /// Rows of `A`.
        m: u64,
        /// Columns of `A`.
        n: u64,
        /// Distance between columns of `A`.
        leading: u64,
    }
}

operation! {
    /// `C = op(Q) C` or `C = C op(Q)`, with `Q` as [`Geqrf`] leaves it.
    Ormqr = "solve.ormqr" {
        /// Of the matrices and `tau`.
        element: ElementType,
        /// On which side of `C` the factor stands.
        side: Side,
        /// Whether `op(Q)` is the transpose.
        transposed: bool,
        /// Rows of `C`.
        m: u64,
        /// Columns of `C`.
        n: u64,
        /// How many Householder vectors make up `Q`.
        k: u64,
        /// Distance between columns of the matrix that holds the vectors.
        a_leading: u64,
        /// Distance between columns of `C`.
        c_leading: u64,
    }
}

operation! {
    /// The first columns of `Q`, which replace the Householder vectors that `geqrf` left in them.
    Orgqr = "solve.orgqr" {
        /// Of all matrices.
        element: ElementType,
        /// Rows of `Q`.
        m: u64,
        /// Columns of `Q` that are formed.
        n: u64,
        /// How many Householder vectors.
        k: u64,
        /// Distance between columns.
        leading: u64,
    }
}

/// Sizes that a library counts in 32 bits.
pub(crate) const SMALL_SIZE_LIMIT: u64 = 1 << 31;

/// Refuses sizes of 2^31 and more, where a library counts in 32 bits.
pub(crate) fn check_small(
    operation: &'static str,
    sizes: &[(&'static str, u64)],
) -> Result<(), OperationError> {
    match sizes.iter().find(|(_, size)| *size >= SMALL_SIZE_LIMIT) {
        None => Ok(()),
        Some((name, size)) => {
            let what = format!("`{name}` is {size}");
            Err(OperationError::shape(
                operation,
                what,
                "use sizes below 2^31, which is what cuSOLVER counts to",
            ))
        }
    }
}

/// The word that says how an operation went.
pub(crate) fn info() -> OperationOperand {
    OperationOperand { name: "info", effect: OperandEffect::Overwrites, bytes: 4, alignment: 4 }
}

/// A matrix that is stored by columns.
pub(crate) fn matrix(
    operand: OperandPlace,
    shape: (u64, u64),
    leading: u64,
) -> Result<Extent, OperationError> {
    Extent::matrices(operand, shape, leading, (1, 0))
}

/// Row numbers of 64 bits, one for each pivot.
fn pivots(
    operation: &'static str,
    count: u64,
    effect: OperandEffect,
) -> Result<OperationOperand, OperationError> {
    Ok(Extent::vector((operation, "pivots"), count, 1)?.operand("pivots", ElementType::F64, effect))
}

impl Potrf {
    pub(crate) fn operands(&self) -> Result<Vec<OperationOperand>, OperationError> {
        check_element(Self::NAME, self.element)?;
        check_sizes(Self::NAME, &[("n", self.n)])?;
        let a = matrix((Self::NAME, "a"), (self.n, self.n), self.leading)?;
        Ok(vec![a.written("a", self.element, true), info()])
    }
}

impl Potrs {
    pub(crate) fn operands(&self) -> Result<Vec<OperationOperand>, OperationError> {
        check_element(Self::NAME, self.element)?;
        check_sizes(Self::NAME, &[("n", self.n), ("columns", self.columns)])?;
        let a = matrix((Self::NAME, "a"), (self.n, self.n), self.a_leading)?;
        let b = matrix((Self::NAME, "b"), (self.n, self.columns), self.b_leading)?;
        Ok(vec![a.read("a", self.element), b.written("b", self.element, true), info()])
    }
}

impl Getrf {
    /// How many pivots there are.
    pub fn pivots(&self) -> u64 {
        self.m.min(self.n)
    }

    pub(crate) fn operands(&self) -> Result<Vec<OperationOperand>, OperationError> {
        check_element(Self::NAME, self.element)?;
        check_sizes(Self::NAME, &[("m", self.m), ("n", self.n)])?;
        let a = matrix((Self::NAME, "a"), (self.m, self.n), self.leading)?;
        let pivots = pivots(Self::NAME, self.pivots(), OperandEffect::Overwrites)?;
        Ok(vec![a.written("a", self.element, true), pivots, info()])
    }
}

impl Getrs {
    pub(crate) fn operands(&self) -> Result<Vec<OperationOperand>, OperationError> {
        check_element(Self::NAME, self.element)?;
        check_sizes(Self::NAME, &[("n", self.n), ("columns", self.columns)])?;
        let a = matrix((Self::NAME, "a"), (self.n, self.n), self.a_leading)?;
        let b = matrix((Self::NAME, "b"), (self.n, self.columns), self.b_leading)?;
        Ok(vec![
            a.read("a", self.element),
            pivots(Self::NAME, self.n, OperandEffect::Reads)?,
            b.written("b", self.element, true),
            info(),
        ])
    }
}

impl Geqrf {
    /// How many Householder vectors there are.
    pub fn vectors(&self) -> u64 {
        self.m.min(self.n)
    }

    pub(crate) fn operands(&self) -> Result<Vec<OperationOperand>, OperationError> {
        check_element(Self::NAME, self.element)?;
        check_sizes(Self::NAME, &[("m", self.m), ("n", self.n)])?;
        let a = matrix((Self::NAME, "a"), (self.m, self.n), self.leading)?;
        let tau = Extent::vector((Self::NAME, "tau"), self.vectors(), 1)?;
        Ok(vec![a.written("a", self.element, true), tau.written("tau", self.element, false), info()])
    }
}

impl Ormqr {
    /// Rows and columns of `Q`.
    pub fn order(&self) -> u64 {
        match self.side {
            Side::Left => self.m,
            Side::Right => self.n,
        }
    }

    pub(crate) fn operands(&self) -> Result<Vec<OperationOperand>, OperationError> {
        let (m, n, k) = (self.m, self.n, self.k);
        check_element(Self::NAME, self.element)?;
        check_sizes(Self::NAME, &[("m", m), ("n", n), ("k", k)])?;
        let sizes =
            [("m", m), ("n", n), ("k", k), ("a_leading", self.a_leading), ("c_leading", self.c_leading)];
        check_small(Self::NAME, &sizes)?;
        if k > self.order() {
            let what = format!("{k} Householder vectors of {} elements", self.order());
            return Err(OperationError::shape(Self::NAME, what, "use at most as many as `q` has rows"));
        }
        let a = matrix((Self::NAME, "a"), (self.order(), k), self.a_leading)?;
        let c = matrix((Self::NAME, "c"), (m, n), self.c_leading)?;
        Ok(vec![
            a.read("a", self.element),
            Extent::vector((Self::NAME, "tau"), k, 1)?.read("tau", self.element),
            c.written("c", self.element, true),
            info(),
        ])
    }
}

impl Orgqr {
    pub(crate) fn operands(&self) -> Result<Vec<OperationOperand>, OperationError> {
        let (m, n, k) = (self.m, self.n, self.k);
        check_element(Self::NAME, self.element)?;
        check_sizes(Self::NAME, &[("m", m), ("n", n), ("k", k)])?;
        check_small(Self::NAME, &[("m", m), ("n", n), ("k", k), ("leading", self.leading)])?;
        if k > n || n > m {
            let what = format!("{n} columns of {m} elements out of {k} Householder vectors");
            let hint = "use at least as many columns as vectors, and at most as many as rows";
            return Err(OperationError::shape(Self::NAME, what, hint));
        }
        Ok(vec![
            matrix((Self::NAME, "a"), (m, n), self.leading)?.written("a", self.element, true),
            Extent::vector((Self::NAME, "tau"), k, 1)?.read("tau", self.element),
            info(),
        ])
    }
}
