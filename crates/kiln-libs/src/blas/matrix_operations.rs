//! Sums and transposes of matrices, and products with symmetric and triangular ones.

use kiln_operation::{Diagonal, Geam, Side, Symm, Triangle, Trmm};

use super::element::Real;
use super::handle::{Blas, check_single, memory, without_terms};
use super::matrix::Matrix;
use super::triangular::stored_triangle;
use crate::Result;
use crate::call_arguments::Argument;
use crate::called::Called;
use crate::described::{Described, check_given};
use crate::error::LibraryError;
use crate::library_call::LibraryCall;
use crate::loaded_operations::LoadedOperations;
use crate::operands::Operands;
use crate::scalar_argument::{accumulated, checked};

impl Blas {
    /// `C = alpha A`, or `C = alpha A + beta B` where a `beta` and a `B` are given. Each of them may be a transpose. A matrix with a factor of 0 is not read.
    ///
    /// ```
    /// use kiln::DeviceRuntime;
    /// use kiln_libs::blas::{Blas, Matrix};
    ///
    /// let gpu = DeviceRuntime::simulated(1)?;
    /// let blas = Blas::new(&gpu);
    /// let (a, b) = (gpu.upload(&[1.0_f32, 2.0, 3.0, 4.0])?, gpu.upload(&[10.0_f32, 20.0, 30.0, 40.0])?);
    /// let c = gpu.allocate::<f32>(4)?;
    /// let square = |buffer| Matrix::new(buffer, 2, 2);
    /// blas.geam(1.0, square(&a), Some((0.5, square(&b).transposed())), square(&c)).submit()?;
    /// assert_eq!(c.download()?, [6.0, 17.0, 13.0, 24.0]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn geam<'a, T: Real>(
        &'a self,
        alpha: f64,
        a: Matrix<'a, T>,
        b: Option<(f64, Matrix<'a, T>)>,
        c: Matrix<'a, T>,
    ) -> LibraryCall<'a> {
        LibraryCall::new(&self.loaded, geam(&self.loaded, (alpha, &a), b, &c))
    }

    /// `C = Aᵀ`, to memory that `A` does not share. [`Matrix::transposed`] is the transpose without a copy.
    pub fn transpose<'a, T: Real>(&'a self, a: Matrix<'a, T>, c: Matrix<'a, T>) -> LibraryCall<'a> {
        LibraryCall::new(&self.loaded, transpose(&self.loaded, &a, &c))
    }

    /// `C = alpha A B` ([`Side::Left`]) or `C = alpha B A` ([`Side::Right`]), or with `+ beta C` where a `beta` is given; without one, and with 0, `C` is not read. `A`
    /// is symmetric: one triangle of it is read. `B` and `C` are stored alike, both row after row or both column after column. With an `alpha` of 0, `A` and `B` are
    /// not read.
    pub fn symm<'a, T: Real>(
        &'a self,
        side: Side,
        alpha: f64,
        (a, triangle): (Matrix<'a, T>, Triangle),
        b: Matrix<'a, T>,
        beta: Option<f64>,
        c: Matrix<'a, T>,
    ) -> LibraryCall<'a> {
        let described = symm(&self.loaded, (side, triangle), (alpha, beta), [&a, &b, &c]);
        LibraryCall::new(&self.loaded, described)
    }

    /// `C = alpha A B` ([`Side::Left`]) or `C = alpha B A` ([`Side::Right`]). `A` is triangular; the other triangle is not read, and with [`Diagonal::Unit`] neither is the
    /// diagonal. `B` and `C` are stored alike, both row after row or both column after column. With an `alpha` of 0, `A` and `B` are not read.
    pub fn trmm<'a, T: Real>(
        &'a self,
        side: Side,
        alpha: f64,
        a: Matrix<'a, T>,
        (triangle, diagonal): (Triangle, Diagonal),
        b: Matrix<'a, T>,
        c: Matrix<'a, T>,
    ) -> LibraryCall<'a> {
        let described = trmm(&self.loaded, (side, triangle, diagonal), alpha, [&a, &b, &c]);
        LibraryCall::new(&self.loaded, described)
    }
}

static TRANSPOSE: Called = Called::new("blas.transpose", "c");
static GEAM: Called = Called::new(Geam::NAME, "c");
/// A sum of `b` alone.
static GEAM_OF_B: Called = Called { names: &[("a", "b")], ..Called::new(Geam::NAME, "c") };
static SYMM: Called = Called::new(Symm::NAME, "c");
static TRMM: Called = Called::new(Trmm::NAME, "c");

/// A sum of one matrix. Messages speak of the transpose that was asked for.
fn transpose<'a, T: Real>(
    loaded: &LoadedOperations,
    a: &Matrix<'a, T>,
    c: &Matrix<'a, T>,
) -> Result<Described<'a>> {
    let call = TRANSPOSE.call;
    check_single(call, a)?;
    check_single(call, c)?;
    if (a.rows, a.columns) != (c.columns, c.rows) {
        let what = format!("the transpose of an `a` of {} into a `c` of {}", a.shape_text(), c.shape_text());
        let hint = "give a `c` that has as many rows as `a` has columns, and as many columns as `a` has rows";
        return Err(LibraryError::argument(call, what, hint));
    }
    a.check_leading(call, "a")?;
    c.check_leading(call, "c")?;
    if a.rows == 0 || a.columns == 0 {
        Operands::of(call).with("a", a.buffer).with("c", c.buffer).check(loaded.gpu())?;
    }
    let described = geam(loaded, (1.0, &a.transposed()), None, c)?;
    Ok(described.called(&TRANSPOSE))
}

/// What is stored of `C` is the matrix or its transpose, and with it those of `A` and `B`.
fn geam<'a, T: Real>(
    loaded: &LoadedOperations,
    (alpha, a): (f64, &Matrix<'a, T>),
    b: Option<(f64, Matrix<'a, T>)>,
    c: &Matrix<'a, T>,
) -> Result<Described<'a>> {
    let given = match b {
        Some((beta, b)) => Some((checked(Geam::NAME, "beta", T::TYPE, beta)?, b)),
        None => None,
    };
    for (name, matrix) in [("a", Some(a)), ("b", given.as_ref().map(|(_, b)| b)), ("c", Some(c))] {
        let Some(matrix) = matrix else { continue };
        check_single(Geam::NAME, matrix)?;
        if (matrix.rows, matrix.columns) != (c.rows, c.columns) {
            let what = format!("{name} of {} and c of {}", matrix.shape_text(), c.shape_text());
            return Err(LibraryError::argument(Geam::NAME, what, "give matrices of the same shape"));
        }
        matrix.check_leading(Geam::NAME, name)?;
    }
    let operands = || {
        let operands = Operands::of(Geam::NAME).with("a", a.buffer);
        operands.with_some("b", given.as_ref().map(|(_, b)| b.buffer)).with("c", c.buffer)
    };
    let alpha = checked(Geam::NAME, "alpha", T::TYPE, alpha)?;
    let terms = [(alpha != 0.0).then_some((alpha, *a)), given.filter(|(beta, _)| *beta != 0.0)];
    let mut terms = terms.into_iter().flatten();
    let (first, second) = (terms.next(), terms.next());
    let (m, n) = c.stored();
    let is_transposed = |matrix: &Matrix<'a, T>| matrix.by_columns != c.by_columns;
    // Where all factors are 0, nothing is read of this one.
    let (alpha, first_term) = first.unwrap_or((0.0, *a));
    let operation = Geam {
        element: T::TYPE,
        m,
        n,
        a_transposed: is_transposed(&first_term),
        a_leading: first_term.distance(),
        has_b: second.is_some(),
        b_transposed: second.as_ref().is_some_and(|(_, b)| is_transposed(b)),
        b_leading: second.as_ref().map_or(0, |(_, b)| b.distance()),
        c_leading: c.distance(),
    };
    if m == 0 || n == 0 {
        return Described::nothing(loaded, operation, &operands());
    }
    if first.is_none() || (given.is_some() && second.is_none()) {
        // A matrix is not read.
        operands().check(loaded.gpu())?;
        check_unread(operation, a, given.as_ref().map(|(_, b)| b), c)?;
    }
    if first.is_none() {
        return without_terms(loaded, &GEAM, *c, None);
    }
    let mut described = Described::of(operation);
    described.push_memory(first_term.buffer);
    if let Some((_, b)) = &second {
        described.push_memory(b.buffer);
    }
    described.push_memory(c.buffer);
    described.push_scalar(alpha);
    if let Some((beta, _)) = second {
        described.push_scalar(beta);
    }
    Ok(described)
}

/// Refuses terms that do not fit the result, each as if it were the only one: those with a factor of 0 are not read, and must still fit.
fn check_unread<T: Real>(
    operation: Geam,
    a: &Matrix<'_, T>,
    b: Option<&Matrix<'_, T>>,
    c: &Matrix<'_, T>,
) -> Result<()> {
    let check = |matrix: &Matrix<'_, T>, called| {
        let one = Geam {
            a_transposed: matrix.by_columns != c.by_columns,
            a_leading: matrix.distance(),
            has_b: false,
            b_transposed: false,
            b_leading: 0,
            ..operation
        };
        let buffers = [matrix.buffer, c.buffer].map(|buffer| Some(Argument::borrowed(buffer)));
        check_given(one, called, buffers)
    };
    check(a, &GEAM)?;
    b.map_or(Ok(()), |b| check(b, &GEAM_OF_B))
}

/// Refuses shapes and layouts of a product with a square matrix, and gives the side that it has where what is stored is the transpose: `(A B)ᵀ = Bᵀ Aᵀ`.
fn check_product<T: Real>(
    operation: &'static str,
    side: Side,
    [a, b, c]: [&Matrix<'_, T>; 3],
) -> Result<Side> {
    let refuse = |what, hint| Err(LibraryError::argument(operation, what, hint));
    for (name, matrix) in [("a", a), ("b", b), ("c", c)] {
        check_single(operation, matrix)?;
        matrix.check_leading(operation, name)?;
    }
    let order = side.order(c.rows, c.columns);
    if (b.rows, b.columns) != (c.rows, c.columns) || (a.rows, a.columns) != (order, order) {
        let what = format!("a of {}, b of {} and c of {}", a.shape_text(), b.shape_text(), c.shape_text());
        return refuse(
            what,
            "give `b` and `c` of one shape, and a square `a` that fits the side of `b` it is on",
        );
    }
    if b.by_columns != c.by_columns {
        let what = "one of `b` and `c` is stored row after row, and the other column after column".to_owned();
        return refuse(what, "store both alike; `transpose` copies a matrix into the other order");
    }
    Ok(match (c.by_columns, side) {
        (true, side) => side,
        (false, Side::Left) => Side::Right,
        (false, Side::Right) => Side::Left,
    })
}

fn product_operands<'a, T: Real>(call: &'static str, [a, b, c]: [&Matrix<'a, T>; 3]) -> Operands<'a> {
    Operands::of(call).with("a", a.buffer).with("b", b.buffer).with("c", c.buffer)
}

fn symm<'a, T: Real>(
    loaded: &LoadedOperations,
    (side, triangle): (Side, Triangle),
    (alpha, beta): (f64, Option<f64>),
    [a, b, c]: [&Matrix<'a, T>; 3],
) -> Result<Described<'a>> {
    let side = check_product(Symm::NAME, side, [a, b, c])?;
    let alpha = checked(Symm::NAME, "alpha", T::TYPE, alpha)?;
    let beta = accumulated(Symm::NAME, T::TYPE, beta)?;
    let (m, n) = c.stored();
    let operation = Symm {
        element: T::TYPE,
        m,
        n,
        side,
        triangle: stored_triangle(a, triangle),
        a_leading: a.distance(),
        b_leading: b.distance(),
        c_leading: c.distance(),
        accumulate: beta.is_some(),
    };
    if m == 0 || n == 0 {
        return Described::nothing(loaded, operation, &product_operands(Symm::NAME, [a, b, c]));
    }
    if alpha == 0.0 {
        product_operands(Symm::NAME, [a, b, c]).check(loaded.gpu())?;
        check_given(operation, &SYMM, [a, b, c].map(|matrix| Some(Argument::borrowed(matrix.buffer))))?;
        return without_terms(loaded, &SYMM, *c, beta);
    }
    let buffers = [memory(a.buffer), memory(b.buffer), memory(c.buffer), Ok(Argument::Scalar(alpha))];
    Described::new(operation, buffers.into_iter().chain(beta.map(|beta| Ok(Argument::Scalar(beta)))))
}

fn trmm<'a, T: Real>(
    loaded: &LoadedOperations,
    (side, triangle, diagonal): (Side, Triangle, Diagonal),
    alpha: f64,
    [a, b, c]: [&Matrix<'a, T>; 3],
) -> Result<Described<'a>> {
    let side = check_product(Trmm::NAME, side, [a, b, c])?;
    let alpha = checked(Trmm::NAME, "alpha", T::TYPE, alpha)?;
    let (m, n) = c.stored();
    let operation = Trmm {
        element: T::TYPE,
        m,
        n,
        side,
        triangle: stored_triangle(a, triangle),
        transposed: a.by_columns != c.by_columns,
        diagonal,
        a_leading: a.distance(),
        b_leading: b.distance(),
        c_leading: c.distance(),
    };
    if m == 0 || n == 0 {
        return Described::nothing(loaded, operation, &product_operands(Trmm::NAME, [a, b, c]));
    }
    if alpha == 0.0 {
        product_operands(Trmm::NAME, [a, b, c]).check(loaded.gpu())?;
        check_given(operation, &TRMM, [a, b, c].map(|matrix| Some(Argument::borrowed(matrix.buffer))))?;
        return without_terms(loaded, &TRMM, *c, None);
    }
    Described::new(
        operation,
        [memory(a.buffer), memory(b.buffer), memory(c.buffer), Ok(Argument::Scalar(alpha))],
    )
}
