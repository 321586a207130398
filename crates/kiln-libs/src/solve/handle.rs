//! `Solve`: the entry point of factorisations and of the systems of equations that they solve.

use kiln_operation::{Geqrf, Getrf, Getrs, Operation, Orgqr, Ormqr, Potrf, Potrs, Side, Triangle};
use kiln_runtime::{DeviceRuntime, GpuRef};

use super::call::SolveCall;
use super::embedded_ptx::SHIPPED;
use super::layout::{
    check_counted, check_shape, check_some, check_square, check_square_or_none, check_tall, column_distance,
};
use super::system::System;
use crate::Result;
use crate::blas::{Matrix, Real, check_single, stored_triangle};
use crate::call_arguments::Argument;
use crate::called::Called;
use crate::described::{Described, check_given};
use crate::error::{LibraryError, method_name};
use crate::loaded_operations::LoadedOperations;
use crate::operands::Operands;
use crate::prims::Primitives;
use crate::prims::check::Check;

const CHOLESKY_SOLVE: Check = Check("solve.cholesky_solve");
const LU_SOLVE: Check = Check("solve.lu_solve");
static CHOLESKY_SOLVED: Called =
    Called { names: &[("a", "factor")], ..Called::new("solve.cholesky_solve", "b") };
static LU_SOLVED: Called = Called { names: &[("a", "factors")], ..Called::new("solve.lu_solve", "b") };
static APPLY_Q: Called = Called { names: &[("a", "factored")], ..Called::new("solve.apply_q", "c") };
static APPLY_Q_TRANSPOSED: Called =
    Called { names: &[("a", "factored")], ..Called::new("solve.apply_q_transposed", "c") };

/// Solvers on one device. It holds the operations and kernels that were used, and nothing else.
///
/// ```
/// use kiln::DeviceRuntime;
/// use kiln_libs::solve::{Matrix, Solve, SolveFailure, Triangle};
///
/// let gpu = DeviceRuntime::simulated(1)?;
/// let solve = Solve::new(&gpu);
/// let a = gpu.upload(&[4.0_f64, 2.0, 2.0, 5.0])?;
/// let b = gpu.upload(&[8.0_f64, 12.0])?;
/// let square = Matrix::new(&a, 2, 2);
/// solve.cholesky(square, Triangle::Lower).submit()?.wait()?;
/// solve.cholesky_solve(square, Triangle::Lower, Matrix::new(&b, 2, 1)).submit()?.wait()?;
/// assert_eq!(b.download()?, [1.0, 2.0]);
///
/// let indefinite = gpu.upload(&[1.0_f64, 2.0, 2.0, 1.0])?;
/// let ticket = solve.cholesky(Matrix::new(&indefinite, 2, 2), Triangle::Lower).submit()?;
/// let failure = ticket.wait().unwrap_err().solve_failure();
/// assert_eq!(failure, Some(SolveFailure::NotPositiveDefinite { order: 2 }));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Solve {
    pub(super) loaded: LoadedOperations,
    /// Kernels of this crate.
    pub(super) kernels: Primitives,
}

impl Solve {
    /// Solvers on a device. Nothing is loaded yet.
    pub fn new(gpu: &DeviceRuntime) -> Self {
        Self { loaded: LoadedOperations::new(gpu), kernels: Primitives::of(gpu, SHIPPED) }
    }

    /// The Cholesky factor of a symmetric positive definite matrix: `A = L Lᵀ` for [`Triangle::Lower`], `A = Uᵀ U` for [`Triangle::Upper`]. It
    /// replaces that triangle; the other one is neither read nor written. Where there is none, the triangle is lost.
    pub fn cholesky<'a, T: Real>(&'a self, a: Matrix<'a, T>, triangle: Triangle) -> SolveCall<'a> {
        let described = check_square(Potrf::NAME, "a", &a).and_then(|n| {
            let triangle = stored_triangle(&a, triangle);
            let operation = Potrf { element: T::TYPE, n, triangle, leading: a.distance() };
            Described::new(operation, [Argument::memory(a.buffer)])
        });
        SolveCall::new(&self.loaded, described)
    }

    /// Solves `A X = B` with the factor that [`cholesky`](Self::cholesky) left in the same triangle. `X` replaces `B`. Right-hand sides that are stored row after
    /// row are copied into columns and back.
    pub fn cholesky_solve<'a, T: Real>(
        &'a self,
        factor: Matrix<'a, T>,
        triangle: Triangle,
        b: Matrix<'a, T>,
    ) -> SolveCall<'a> {
        let described = check_square_or_none(Potrs::NAME, "factor", &factor).and_then(|n| {
            check_shape(Potrs::NAME, "b", &b, (n, b.columns))?;
            let operation = |columns, b_leading| Potrs {
                element: T::TYPE,
                n,
                columns,
                triangle: stored_triangle(&factor, triangle),
                a_leading: factor.distance(),
                b_leading,
            };
            if n == 0 || b.columns == 0 {
                let operands = Operands::of(CHOLESKY_SOLVED.call).with("factor", factor.buffer);
                if n == 0 {
                    let operands = operands.with("b", b.buffer);
                    let described =
                        Described::nothing(&self.loaded, operation(b.columns, b.distance()), &operands)?;
                    return Ok((described.called(&CHOLESKY_SOLVED), None));
                }
                let given = [Some(Argument::borrowed(factor.buffer))];
                return self.no_sides(operation(1, n), &CHOLESKY_SOLVED, operands.with("b", b.buffer), given);
            }
            b.check_leading(Potrs::NAME, "b")?;
            let (system, b_leading) = System::new(&self.kernels, CHOLESKY_SOLVE, &factor, None, &b)?;
            let buffers = [Argument::memory(factor.buffer), Argument::memory(b.buffer)];
            let described = Described::new(operation(b.columns, b_leading), buffers)?;
            Ok((described.called(&CHOLESKY_SOLVED), Some(system)))
        });
        SolveCall::of_system(&self.loaded, described, b.buffer.home())
    }

    /// `P A = L U` with partial pivoting; the factors replace `A`, and the rows that were exchanged, counted from 1, go into `pivots`, which has as many
    /// elements as the shorter side of `A`. Of a matrix that is stored row after row the transpose is factored; [`lu_solve`](Self::lu_solve) knows
    /// that. [`SolveTicket::wait`](super::SolveTicket::wait) says whether the matrix has NaN or infinities, gets them in its factors, or is singular, and of more than one
    /// the first: cuSOLVER says nothing of NaN, or calls the matrix singular, so that a kernel looks at the matrix before it, and at the diagonal behind it.
    pub fn lu<'a, T: Real>(&'a self, a: Matrix<'a, T>, pivots: &'a GpuRef<i64>) -> SolveCall<'a> {
        let described = check_single(Getrf::NAME, &a).and_then(|()| {
            check_some(Getrf::NAME, "a", &a)?;
            a.check_leading(Getrf::NAME, "a")?;
            let (m, n) = a.stored();
            let operation = Getrf { element: T::TYPE, m, n, leading: a.distance() };
            let described =
                Described::new(operation, [Argument::memory(a.buffer), Argument::memory(pivots)])?;
            Ok((described, Some(System::factorisation(&self.kernels, &a)?)))
        });
        SolveCall::of_system(&self.loaded, described, a.buffer.home())
    }

    /// Solves `A X = B` with the factors and pivots of [`lu`](Self::lu), given in the layout that `A` had. `X` replaces `B`. Right-hand sides that are stored row
    /// after row are copied into columns and back.
    ///
    /// Where a pivot is no row of the matrix, [`SolveTicket::wait`](super::SolveTicket::wait) says which, and what is in `B` has no meaning. A zero, a NaN or an infinity on the
    /// diagonal of the factors gives a solution without meaning, and is told by `wait`, too.
    pub fn lu_solve<'a, T: Real>(
        &'a self,
        factors: Matrix<'a, T>,
        pivots: &'a GpuRef<i64>,
        b: Matrix<'a, T>,
    ) -> SolveCall<'a> {
        let described = check_square_or_none(Getrs::NAME, "factors", &factors).and_then(|n| {
            check_shape(Getrs::NAME, "b", &b, (n, b.columns))?;
            let operation = |columns, b_leading| Getrs {
                element: T::TYPE,
                n,
                columns,
                transposed: !factors.by_columns,
                a_leading: factors.distance(),
                b_leading,
            };
            if n == 0 || b.columns == 0 {
                let operands = Operands::of(LU_SOLVED.call).with("factors", factors.buffer);
                let operands = operands.with("pivots", pivots).with("b", b.buffer);
                if n == 0 {
                    LU_SOLVE.length("pivots", pivots, 0)?;
                    let described =
                        Described::nothing(&self.loaded, operation(b.columns, b.distance()), &operands)?;
                    return Ok((described.called(&LU_SOLVED), None));
                }
                let given = [Some(Argument::borrowed(factors.buffer)), Some(Argument::borrowed(pivots))];
                return self.no_sides(operation(1, n), &LU_SOLVED, operands, given);
            }
            b.check_leading(Getrs::NAME, "b")?;
            let used = pivots.view(..pivots.len().min(n as usize))?;
            let (system, b_leading) = System::new(&self.kernels, LU_SOLVE, &factors, Some(&used), &b)?;
            let buffers =
                [Argument::memory(factors.buffer), Argument::memory(pivots), Argument::memory(b.buffer)];
            let described = Described::new(operation(b.columns, b_leading), buffers)?;
            Ok((described.called(&LU_SOLVED), Some(system)))
        });
        SolveCall::of_system(&self.loaded, described, b.buffer.home())
    }

    /// A system without right-hand sides: nothing is solved. `operation` is the same with one, for what must fit nevertheless.
    fn no_sides<'a, const COUNT: usize>(
        &self,
        operation: impl Into<Operation>,
        called: &'static Called,
        operands: Operands<'_>,
        given: [Option<Argument<'a>>; COUNT],
    ) -> Result<(Described<'a>, Option<System<'a>>)> {
        let operation = operation.into();
        check_given(operation, called, given)?;
        Ok((Described::nothing(&self.loaded, operation, &operands)?.called(called), None))
    }

    /// `A = Q R`, for a matrix that is stored column after column. `R` replaces the upper triangle; `Q` is kept as Householder vectors below it and in
    /// `tau`, which has as many elements as the shorter side of `A`.
    pub fn qr<'a, T: Real>(&'a self, a: Matrix<'a, T>, tau: &'a GpuRef<T>) -> SolveCall<'a> {
        SolveCall::new(&self.loaded, qr(&a, tau))
    }

    /// `C = Q C` ([`Side::Left`]) or `C = C Q` ([`Side::Right`]), with the vectors that [`qr`](Self::qr) left in its matrix and in `tau`.
    pub fn apply_q<'a, T: Real>(
        &'a self,
        side: Side,
        factored: Matrix<'a, T>,
        tau: &'a GpuRef<T>,
        c: Matrix<'a, T>,
    ) -> SolveCall<'a> {
        SolveCall::new(&self.loaded, apply_q_to_any(&self.loaded, (side, false), &factored, tau, &c))
    }

    /// `Q` as a matrix: the vectors that [`qr`](Self::qr) left in `a` and in `tau` are replaced by as many columns of `Q` as `a` has. `a` has at least as many rows as
    /// columns, and is stored column after column. `R` is lost; copy it before.
    ///
    /// ```
    /// use kiln::DeviceRuntime;
    /// use kiln_libs::solve::{Matrix, Solve};
    ///
    /// let gpu = DeviceRuntime::simulated(1)?;
    /// let solve = Solve::new(&gpu);
    /// let (a, tau) = (gpu.upload(&[3.0_f64, 4.0])?, gpu.allocate::<f64>(1)?);
    /// let column = Matrix::new(&a, 1, 2).transposed(); // one column of two rows
    /// solve.qr(column, &tau).submit()?;
    /// solve.form_q(column, &tau).submit()?.wait()?;
    /// let q = a.download()?;
    /// assert!((q[0].abs() - 0.6).abs() < 1e-15 && (q[1].abs() - 0.8).abs() < 1e-15);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn form_q<'a, T: Real>(&'a self, a: Matrix<'a, T>, tau: &'a GpuRef<T>) -> SolveCall<'a> {
        SolveCall::new(&self.loaded, form_q(&self.loaded, &a, tau))
    }

    /// `C = Qᵀ C` ([`Side::Left`]) or `C = C Qᵀ` ([`Side::Right`]); see [`apply_q`](Self::apply_q).
    pub fn apply_q_transposed<'a, T: Real>(
        &'a self,
        side: Side,
        factored: Matrix<'a, T>,
        tau: &'a GpuRef<T>,
        c: Matrix<'a, T>,
    ) -> SolveCall<'a> {
        SolveCall::new(&self.loaded, apply_q_to_any(&self.loaded, (side, true), &factored, tau, &c))
    }
}

fn form_q<'a, T: Real>(
    loaded: &LoadedOperations,
    a: &Matrix<'a, T>,
    tau: &'a GpuRef<T>,
) -> Result<Described<'a>> {
    check_single(Orgqr::NAME, a)?;
    if a.columns == 0 {
        // No columns of `Q` are asked for.
        let operation = Orgqr { element: T::TYPE, m: a.rows, n: 0, k: 0, leading: a.distance() };
        Check(Orgqr::NAME).length("tau", tau, 0)?;
        let operands = Operands::of(method_name(Orgqr::NAME)).with("a", a.buffer).with("tau", tau);
        return Described::nothing(loaded, operation, &operands);
    }
    check_counted(Orgqr::NAME, "a", a)?;
    let leading = column_distance(Orgqr::NAME, "a", a)?;
    let why = ("it has more columns than `q` has", "use the first columns, as many as there are rows");
    check_tall(Orgqr::NAME, a, why)?;
    let operation = Orgqr { element: T::TYPE, m: a.rows, n: a.columns, k: a.columns, leading };
    Described::new(operation, [Argument::memory(a.buffer), Argument::memory(tau)])
}

pub(super) fn qr<T: Real>(a: &Matrix<'_, T>, tau: &GpuRef<T>) -> Result<Described<'static>> {
    Described::new(qr_operation(Geqrf::NAME, a)?, [Argument::memory(a.buffer), Argument::memory(tau)])
}

pub(super) fn qr_operation<T: Real>(call: &'static str, a: &Matrix<'_, T>) -> Result<Geqrf> {
    check_single(call, a)?;
    check_some(call, "a", a)?;
    a.check_leading(call, "a")?;
    let leading = column_distance(call, "a", a)?;
    Ok(Geqrf { element: T::TYPE, m: a.rows, n: a.columns, leading })
}

/// A product with `Q`, of a `C` that may have no elements.
fn apply_q_to_any<'a, T: Real>(
    loaded: &LoadedOperations,
    (side, transposed): (Side, bool),
    factored: &Matrix<'a, T>,
    tau: &'a GpuRef<T>,
    c: &Matrix<'a, T>,
) -> Result<Described<'a>> {
    let order = if side == Side::Left { c.rows } else { c.columns };
    if factored.columns == 0 || factored.rows == 0 {
        return without_reflections(loaded, (side, transposed), factored, tau, c);
    }
    if c.rows.saturating_mul(c.columns) > 0 || order == 0 {
        return apply_q((side, transposed), factored, tau, c);
    }
    let called = if transposed { &APPLY_Q_TRANSPOSED } else { &APPLY_Q };
    // What must fit is that of one column, or of one row.
    let (rows, columns) = (c.rows.max(1) as usize, c.columns.max(1) as usize);
    let one = Matrix::new(c.buffer, rows, columns);
    let operation = q_operation(called.call, (side, transposed), ("factored", factored), ("c", &one))?;
    let operands = Operands::of(called.call).with("factored", factored.buffer).with("tau", tau);
    let given = [factored.buffer, tau].map(|buffer| Some(Argument::borrowed(buffer)));
    check_given(operation, called, given)?;
    Ok(Described::nothing(loaded, operation, &operands.with("c", c.buffer))?.called(called))
}

/// A product with a `Q` of no reflections, which leaves `C` as it is.
fn without_reflections<'a, T: Real>(
    loaded: &LoadedOperations,
    (side, transposed): (Side, bool),
    factored: &Matrix<'a, T>,
    tau: &'a GpuRef<T>,
    c: &Matrix<'a, T>,
) -> Result<Described<'a>> {
    let called = if transposed { &APPLY_Q_TRANSPOSED } else { &APPLY_Q };
    check_single(called.call, factored)?;
    check_single(called.call, c)?;
    check_order(called.call, side, factored, c)?;
    Check(called.call).length("tau", tau, 0)?;
    c.check_room(called.call, "c")?;
    let (m, n) = (c.rows, c.columns);
    let (a_leading, c_leading) = (factored.distance(), c.distance());
    let operation = Ormqr { element: T::TYPE, side, transposed, m, n, k: 0, a_leading, c_leading };
    let operands = Operands::of(called.call).with("factored", factored.buffer).with("tau", tau);
    Ok(Described::nothing(loaded, operation, &operands.with("c", c.buffer))?.called(called))
}

/// Refuses a `C` whose side next to `Q` has another length.
fn check_order<T: Real>(
    call: &'static str,
    side: Side,
    factored: &Matrix<'_, T>,
    c: &Matrix<'_, T>,
) -> Result<()> {
    let order = match side {
        Side::Left => c.rows,
        Side::Right => c.columns,
    };
    if factored.rows == order {
        return Ok(());
    }
    let what = format!("factors of {} and c of {}", factored.shape_text(), c.shape_text());
    let hint = "give a `c` whose side next to `q` is as long as the factored matrix has rows";
    Err(LibraryError::argument(call, what, hint))
}

pub(super) fn apply_q<T: Real>(
    (side, transposed): (Side, bool),
    factored: &Matrix<'_, T>,
    tau: &GpuRef<T>,
    c: &Matrix<'_, T>,
) -> Result<Described<'static>> {
    let called = if transposed { &APPLY_Q_TRANSPOSED } else { &APPLY_Q };
    let operation = q_operation(called.call, (side, transposed), ("factored", factored), ("c", c))?;
    let buffers = [Argument::memory(factored.buffer), Argument::memory(tau), Argument::memory(c.buffer)];
    Ok(Described::new(operation, buffers)?.called(called))
}

/// A product with `Q`; messages name the call that it is made for.
pub(super) fn q_operation<T: Real>(
    call: &'static str,
    (side, transposed): (Side, bool),
    (factored_name, factored): (&'static str, &Matrix<'_, T>),
    (c_name, c): (&'static str, &Matrix<'_, T>),
) -> Result<Ormqr> {
    check_single(call, factored)?;
    check_single(call, c)?;
    check_counted(call, factored_name, factored)?;
    check_counted(call, c_name, c)?;
    let a_leading = column_distance(call, factored_name, factored)?;
    check_order(call, side, factored, c)?;
    // Where rows of C lie one after the other, its transpose is stored, and (Q C)ᵀ = Cᵀ Qᵀ.
    let (side, transposed) = match (c.by_columns, side) {
        (true, side) => (side, transposed),
        (false, Side::Left) => (Side::Right, !transposed),
        (false, Side::Right) => (Side::Left, !transposed),
    };
    let (m, n) = c.stored();
    let k = factored.rows.min(factored.columns);
    let c_leading = c.distance();
    Ok(Ormqr { element: T::TYPE, side, transposed, m, n, k, a_leading, c_leading })
}
