//! Operations on symmetric and triangular matrices.

use kiln_operation::{Diagonal, Side, Syrk, Triangle, Trsm};

use super::element::Real;
use super::handle::{Blas, check_single, memory, without_terms};
use super::matrix::Matrix;
use crate::Result;
use crate::call_arguments::Argument;
use crate::call_state::check_ready;
use crate::called::Called;
use crate::described::{Described, check_given};
use crate::error::LibraryError;
use crate::library_call::LibraryCall;
use crate::library_tag::library_zeros;
use crate::loaded_operations::LoadedOperations;
use crate::operands::Operands;
use crate::scalar_argument::{accumulated, checked};

impl Blas {
    /// One triangle of `C = alpha A Aᵀ`, or of `C = alpha A Aᵀ + beta C` where a `beta` is given; without one, and with 0, `C` is not read. The other
    /// triangle is neither read nor written. With an `alpha` of 0, `A` is not read.
    pub fn syrk<'a, T: Real>(
        &'a self,
        alpha: f64,
        a: Matrix<'a, T>,
        beta: Option<f64>,
        triangle: Triangle,
        c: Matrix<'a, T>,
    ) -> LibraryCall<'a> {
        LibraryCall::new(&self.loaded, syrk(&self.loaded, (alpha, beta), &a, triangle, &c))
    }

    /// Solves `A X = alpha B`, or `X A = alpha B`, for `X`, which replaces `B`. `A` is triangular; the other triangle is not read, and with
    /// [`Diagonal::Unit`] neither is the diagonal. A zero on the diagonal gives infinities and NaN, as in every BLAS. With an
    /// `alpha` of 0, `X` is 0, and neither `A` nor `B` is read.
    pub fn trsm<'a, T: Real>(
        &'a self,
        side: Side,
        alpha: f64,
        a: Matrix<'a, T>,
        (triangle, diagonal): (Triangle, Diagonal),
        b: Matrix<'a, T>,
    ) -> LibraryCall<'a> {
        LibraryCall::new(&self.loaded, trsm(&self.loaded, (side, alpha), &a, (triangle, diagonal), &b))
    }
}

static SYRK: Called = Called::new(Syrk::NAME, "c");
static TRSM: Called = Called::new(Trsm::NAME, "b");

/// The triangle of what is stored.
pub(crate) fn stored_triangle<T: Real>(matrix: &Matrix<'_, T>, triangle: Triangle) -> Triangle {
    match (matrix.by_columns, triangle) {
        (true, triangle) => triangle,
        (false, Triangle::Upper) => Triangle::Lower,
        (false, Triangle::Lower) => Triangle::Upper,
    }
}

fn syrk<'a, T: Real>(
    loaded: &LoadedOperations,
    (alpha, beta): (f64, Option<f64>),
    a: &Matrix<'a, T>,
    triangle: Triangle,
    c: &Matrix<'a, T>,
) -> Result<Described<'a>> {
    let beta = accumulated(Syrk::NAME, T::TYPE, beta)?;
    let alpha = checked(Syrk::NAME, "alpha", T::TYPE, alpha)?;
    let operands = || Operands::of(Syrk::NAME).with("a", a.buffer).with("c", c.buffer);
    check_single(Syrk::NAME, a)?;
    check_single(Syrk::NAME, c)?;
    if (c.rows, c.columns) != (a.rows, a.rows) {
        let what = format!("a of {} and c of {}", a.shape_text(), c.shape_text());
        return Err(LibraryError::argument(
            Syrk::NAME,
            what,
            "give a square `c` with as many rows as `a` has",
        ));
    }
    let operation = Syrk {
        element: T::TYPE,
        n: a.rows,
        k: a.columns,
        triangle: stored_triangle(c, triangle),
        transposed: !a.by_columns,
        a_leading: a.distance(),
        c_leading: c.distance(),
        accumulate: beta.is_some(),
    };
    if a.rows == 0 {
        return Described::nothing(loaded, operation, &operands());
    }
    if a.columns > 0 {
        a.check_leading(Syrk::NAME, "a")?;
    }
    c.check_leading(Syrk::NAME, "c")?;
    if a.columns == 0 || alpha == 0.0 {
        check_ready(loaded.gpu(), Syrk::NAME)?;
        operands().check(loaded.gpu())?;
        c.check_room(Syrk::NAME, "c")?;
        if a.columns > 0 {
            check_given(operation, &SYRK, [a, c].map(|matrix| Some(Argument::borrowed(matrix.buffer))))?;
        }
        // A product of no terms: one of zeros stands for it. cuBLAS reads `a` with an `alpha` of 0, too.
        let zeros =
            library_zeros::<T>(loaded.gpu(), a.rows as usize).map_err(|error| error.within(Syrk::NAME))?;
        let described = syrk(loaded, (1.0, beta), &Matrix::new(&zeros, a.rows as usize, 1), triangle, c)?;
        return Ok(described.into_held());
    }
    let buffers = [memory(a.buffer), memory(c.buffer), Ok(Argument::Scalar(alpha))];
    Described::new(operation, buffers.into_iter().chain(beta.map(|beta| Ok(Argument::Scalar(beta)))))
}

fn trsm<'a, T: Real>(
    loaded: &LoadedOperations,
    (side, alpha): (Side, f64),
    a: &Matrix<'a, T>,
    (triangle, diagonal): (Triangle, Diagonal),
    b: &Matrix<'a, T>,
) -> Result<Described<'a>> {
    check_single(Trsm::NAME, a)?;
    check_single(Trsm::NAME, b)?;
    let order = match side {
        Side::Left => b.rows,
        Side::Right => b.columns,
    };
    if (a.rows, a.columns) != (order, order) {
        let what = format!("a of {} and b of {}", a.shape_text(), b.shape_text());
        return Err(LibraryError::argument(
            Trsm::NAME,
            what,
            "give a square `a` that fits the side of `b` it is on",
        ));
    }
    let alpha = checked(Trsm::NAME, "alpha", T::TYPE, alpha)?;
    // Of A X = B the transpose is Xᵀ Aᵀ = Bᵀ, which is what is stored where rows lie one after the other.
    let (m, n) = b.stored();
    let side = match (b.by_columns, side) {
        (true, side) => side,
        (false, Side::Left) => Side::Right,
        (false, Side::Right) => Side::Left,
    };
    let operation = Trsm {
        element: T::TYPE,
        m,
        n,
        side,
        triangle: stored_triangle(a, triangle),
        transposed: a.by_columns != b.by_columns,
        diagonal,
        a_leading: a.distance(),
        b_leading: b.distance(),
    };
    let operands = || Operands::of(Trsm::NAME).with("a", a.buffer).with("b", b.buffer);
    if m == 0 || n == 0 {
        return Described::nothing(loaded, operation, &operands());
    }
    a.check_leading(Trsm::NAME, "a")?;
    b.check_leading(Trsm::NAME, "b")?;
    if alpha == 0.0 {
        // cuBLAS reads both matrices then, too.
        operands().check(loaded.gpu())?;
        check_given(operation, &TRSM, [a, b].map(|matrix| Some(Argument::borrowed(matrix.buffer))))?;
        return without_terms(loaded, &TRSM, *b, None);
    }
    Described::new(operation, [memory(a.buffer), memory(b.buffer), Ok(Argument::Scalar(alpha))])
}
