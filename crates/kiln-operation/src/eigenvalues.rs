//! Eigenvalues and singular values, for `f32` and `f64`.

use crate::element_type::ElementType;
use crate::error::OperationError;
use crate::extent::{Extent, check_sizes};
use crate::factor::{check_small, info, matrix};
use crate::field::operation;
use crate::level1::check_element;
use crate::level3::Triangle;
use crate::operand::OperationOperand;

operation! {
    /// The eigenvalues of a symmetric matrix, in ascending order. With vectors, `A` becomes the orthogonal matrix whose columns are the
    /// eigenvectors; without, what `A` holds afterwards is not defined. The info word is 0 unless the iteration did not converge.
    Syevd = "solve.syevd" {
        /// Of the matrix and the eigenvalues.
        element: ElementType,
        /// Rows and columns of `A`.
        n: u64,
        /// The triangle that is read.
        triangle: Triangle,
        /// Whether eigenvectors are computed.
        vectors: bool,
        /// Distance between columns of `A`.
        leading: u64,
    }
}

operation! {
    /// `A = U diag(s) Vᵀ`, with the singular values in descending order. With vectors, `U` and `V` get the first `min(m, n)` columns. What `A` holds
    /// afterwards is not defined. The info word is 0 unless the iteration did not converge.
    Gesvd = "solve.gesvd" {
        /// Of the matrices and the singular values.
        element: ElementType,
        /// Rows of `A`.
        m: u64,
        /// Columns of `A`.
        n: u64,
        /// Whether `U` and `V` are computed.
        vectors: bool,
        /// Distance between columns of `A`.
        a_leading: u64,
        /// Distance between columns of `U`; 0 without vectors.
        u_leading: u64,
        /// Distance between columns of `V`; 0 without vectors.
        v_leading: u64,
    }
}

impl Syevd {
    pub(crate) fn operands(&self) -> Result<Vec<OperationOperand>, OperationError> {
        check_element(Self::NAME, self.element)?;
        check_sizes(Self::NAME, &[("n", self.n)])?;
        let a = matrix((Self::NAME, "a"), (self.n, self.n), self.leading)?;
        let values = Extent::vector((Self::NAME, "values"), self.n, 1)?;
        Ok(vec![a.written("a", self.element, true), values.written("values", self.element, false), info()])
    }
}

impl Gesvd {
    /// How many singular values there are.
    pub fn values(&self) -> u64 {
        self.m.min(self.n)
    }

    pub(crate) fn operands(&self) -> Result<Vec<OperationOperand>, OperationError> {
        let (m, n, k) = (self.m, self.n, self.values());
        check_element(Self::NAME, self.element)?;
        check_sizes(Self::NAME, &[("m", m), ("n", n)])?;
        let leadings =
            [("a_leading", self.a_leading), ("u_leading", self.u_leading), ("v_leading", self.v_leading)];
        check_small(Self::NAME, &[("m", m), ("n", n)])?;
        check_small(Self::NAME, &leadings)?;
        if !self.vectors && (self.u_leading, self.v_leading) != (0, 0) {
            let what = "leading dimensions of vectors that are not computed";
            return Err(OperationError::shape(Self::NAME, what, "use 0"));
        }
        let a = matrix((Self::NAME, "a"), (m, n), self.a_leading)?;
        let s = Extent::vector((Self::NAME, "s"), k, 1)?;
        let mut operands = vec![a.written("a", self.element, true), s.written("s", self.element, false)];
        if self.vectors {
            let u = matrix((Self::NAME, "u"), (m, k), self.u_leading)?;
            let v = matrix((Self::NAME, "v"), (n, k), self.v_leading)?;
            operands.push(u.written("u", self.element, false));
            operands.push(v.written("v", self.element, false));
        }
        operands.push(info());
        Ok(operands)
    }
}
