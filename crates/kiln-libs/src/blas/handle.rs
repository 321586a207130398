//! `Blas`: the entry point of all BLAS operations on a device.

use kiln_operation::{Axpy, Dot, Gemv, Ger, Nrm2, Scal};
use kiln_runtime::internal::BufferBytes;
use kiln_runtime::{DeviceRuntime, GpuRef};

use super::element::{MatrixElement, Real};
use super::matmul::MatmulCall;
use super::matrix::Matrix;
use super::vector::Vector;
use crate::Result;
use crate::call_arguments::Argument;
use crate::call_state::check_ready;
use crate::called::Called;
use crate::described::Described;
use crate::error::{LibraryError, method_name};
use crate::library_call::LibraryCall;
use crate::loaded_operations::LoadedOperations;
use crate::operands::{Operands, check_operand};
use crate::prims::check::Check;
use crate::scalar_argument::{accumulated, scalar};

/// Linear algebra on one device. It holds the operations that were used, and nothing else.
///
/// ```
/// use kiln::DeviceRuntime;
/// use kiln_libs::blas::Blas;
///
/// let gpu = DeviceRuntime::simulated(1)?;
/// let blas = Blas::new(&gpu);
/// let (x, y) = (gpu.upload(&[3.0_f64, 4.0])?, gpu.upload(&[1.0_f64, 1.0])?);
/// blas.axpy(2.0, &x, &y).submit()?;
/// assert_eq!(y.download()?, [7.0, 9.0]);
/// let length = gpu.allocate::<f64>(1)?;
/// blas.nrm2(&x, &length).submit()?;
/// assert_eq!(length.download()?, [5.0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Blas {
    pub(super) loaded: LoadedOperations,
}

impl Blas {
    /// Linear algebra on a device. Nothing is loaded yet.
    pub fn new(gpu: &DeviceRuntime) -> Self {
        Self { loaded: LoadedOperations::new(gpu) }
    }

    /// `C = A B`, to which [`MatmulCall`] adds the rest.
    pub fn matmul<'a, T: MatrixElement, O: MatrixElement>(
        &'a self,
        a: Matrix<'a, T>,
        b: Matrix<'a, T>,
        c: Matrix<'a, O>,
    ) -> MatmulCall<'a, T, O> {
        MatmulCall::new(&self.loaded, a, b, c)
    }

    /// `y = alpha A x`, or `y = alpha A x + beta y` where a `beta` is given; without one, and with 0, `y` is not read. Here and below, `alpha` and `beta` are
    /// rounded to the type of the elements, and with an `alpha` of 0 the operands that it multiplies are not read.
    pub fn gemv<'a, T: Real>(
        &'a self,
        alpha: f64,
        a: Matrix<'a, T>,
        x: impl Into<Vector<'a, T>>,
        beta: Option<f64>,
        y: impl Into<Vector<'a, T>>,
    ) -> LibraryCall<'a> {
        LibraryCall::new(&self.loaded, gemv(&self.loaded, (alpha, beta), &a, (&x.into(), &y.into())))
    }

    /// `A = alpha x yᵀ + A`.
    pub fn ger<'a, T: Real>(
        &'a self,
        alpha: f64,
        x: impl Into<Vector<'a, T>>,
        y: impl Into<Vector<'a, T>>,
        a: Matrix<'a, T>,
    ) -> LibraryCall<'a> {
        LibraryCall::new(&self.loaded, ger(&self.loaded, alpha, x.into(), y.into(), &a))
    }

    /// `result = x · y`, and 0 for vectors without elements; the result is a buffer of one element.
    pub fn dot<'a, T: Real>(
        &'a self,
        x: impl Into<Vector<'a, T>>,
        y: impl Into<Vector<'a, T>>,
        result: &'a GpuRef<T>,
    ) -> LibraryCall<'a> {
        let (x, y) = (x.into(), y.into());
        let described = same_length(Dot::NAME, &x, &y).and_then(|n| {
            Check(Dot::NAME).length("result", result, 1)?;
            if n == 0 {
                Operands::of(Dot::NAME).with("x", x.buffer).with("y", y.buffer).check(self.loaded.gpu())?;
                return without_terms(&self.loaded, &DOT, Matrix::new(result, 1, 1), None);
            }
            let dot = Dot { element: T::TYPE, n, x_step: x.step, y_step: y.step };
            Described::new(dot, [memory(x.buffer), memory(y.buffer), memory(result)])
        });
        LibraryCall::new(&self.loaded, described)
    }

    /// `result = ‖x‖₂`, and 0 for a vector without elements; the result is a buffer of one element.
    pub fn nrm2<'a, T: Real>(
        &'a self,
        x: impl Into<Vector<'a, T>>,
        result: &'a GpuRef<T>,
    ) -> LibraryCall<'a> {
        let x = x.into();
        let nrm2 = Nrm2 { element: T::TYPE, n: x.len(), x_step: x.step };
        let described = Check(Nrm2::NAME).length("result", result, 1).and_then(|()| match x.len() {
            0 => {
                Operands::of(Nrm2::NAME).with("x", x.buffer).check(self.loaded.gpu())?;
                without_terms(&self.loaded, &NRM2, Matrix::new(result, 1, 1), None)
            }
            _ => Described::new(nrm2, [memory(x.buffer), memory(result)]),
        });
        LibraryCall::new(&self.loaded, described)
    }

    /// `y = alpha x + y`.
    pub fn axpy<'a, T: Real>(
        &'a self,
        alpha: f64,
        x: impl Into<Vector<'a, T>>,
        y: impl Into<Vector<'a, T>>,
    ) -> LibraryCall<'a> {
        let (x, y) = (x.into(), y.into());
        let described = same_length(Axpy::NAME, &x, &y).and_then(|n| {
            let axpy = Axpy { element: T::TYPE, n, x_step: x.step, y_step: y.step };
            let alpha = scalar(Axpy::NAME, "alpha", T::TYPE, alpha)?;
            if n == 0 {
                let operands = Operands::of(Axpy::NAME).with("x", x.buffer).with("y", y.buffer);
                return Described::nothing(&self.loaded, axpy, &operands);
            }
            Described::new(axpy, [memory(x.buffer), memory(y.buffer), Ok(alpha)])
        });
        LibraryCall::new(&self.loaded, described)
    }

    /// `x = alpha x`.
    pub fn scal<'a, T: Real>(&'a self, alpha: f64, x: impl Into<Vector<'a, T>>) -> LibraryCall<'a> {
        let x = x.into();
        let scal = Scal { element: T::TYPE, n: x.len(), x_step: x.step };
        let described = scalar(Scal::NAME, "alpha", T::TYPE, alpha).and_then(|alpha| match x.len() {
            0 => Described::nothing(&self.loaded, scal, &Operands::of(Scal::NAME).with("x", x.buffer)),
            _ => Described::new(scal, [memory(x.buffer), Ok(alpha)]),
        });
        LibraryCall::new(&self.loaded, described)
    }
}

pub(super) fn memory<T: kiln_runtime::Element>(buffer: &GpuRef<T>) -> Result<Argument<'_>> {
    Ok(Argument::borrowed(buffer))
}

/// Refuses a batch where an operation takes one matrix.
pub(crate) fn check_single<T: Real>(operation: &'static str, matrix: &Matrix<'_, T>) -> Result<()> {
    if matrix.batch == 1 {
        return Ok(());
    }
    let what = format!("a batch of {} matrices", matrix.batch);
    let hint = match method_name(operation) {
        "solve.cholesky" => "use `cholesky_batched`",
        "solve.cholesky_solve" => "use `cholesky_solve_batched`",
        "solve.lu" => "use `lu_batched`",
        "solve.lu_solve" => "use `lu_solve_batched`",
        "solve.qr" => "use `qr_batched`",
        "solve.apply_q" => "use `apply_q_batched`",
        "solve.apply_q_transposed" => "use `apply_q_transposed_batched`",
        "solve.least_squares" => "use `least_squares_batched`",
        "solve.eigenvalues" => "use `eigenvalues_batched`",
        "solve.eigenvectors" => "use `eigenvectors_batched`",
        "solve.singular_values" => "use `singular_values_batched`",
        "solve.svd" => "use `svd_batched`",
        _ => "call it for each of them",
    };
    Err(LibraryError::argument(operation, what, hint))
}

pub(super) fn same_length<T: Real>(
    operation: &'static str,
    x: &Vector<'_, T>,
    y: &Vector<'_, T>,
) -> Result<u64> {
    if x.len() == y.len() {
        return Ok(x.len());
    }
    let y_text = if y.step == 1 { y.len().to_string() } else { y.len_text() };
    let what = format!("`x` has {} and `y` has {y_text}", x.len_text());
    Err(LibraryError::argument(operation, what, "use vectors of the same length"))
}

/// Refuses vectors that do not go with a matrix.
fn check_lengths<T: Real>(
    operation: &'static str,
    a: &Matrix<'_, T>,
    wanted: (u64, u64),
    (x, y): (&Vector<'_, T>, &Vector<'_, T>),
) -> Result<()> {
    check_single(operation, a)?;
    if (x.len(), y.len()) == wanted {
        return Ok(());
    }
    let x_text = if x.step == 1 { x.len().to_string() } else { x.len_text() };
    let given = format!("x of {x_text} and y of {}", y.len_text());
    let what = format!("a matrix of {} with {given}", a.shape_text());
    Err(LibraryError::argument(operation, what, "give vectors that are as long as the rows and columns"))
}

static DOT: Called = Called::new(Dot::NAME, "result");
static NRM2: Called = Called::new(Nrm2::NAME, "result");
static GEMV: Called = Called::new(Gemv::NAME, "y");
/// Where rows of the matrix lie one after the other, so that the vectors are exchanged.
static GER_OF_ROWS: Called = Called { names: &[("x", "y"), ("y", "x")], ..Called::new(Ger::NAME, "a") };

/// `C = beta C`, or zeros: what is left of an operation whose sums have no terms. The buffers of the terms are checked by the caller.
pub(crate) fn without_terms<T: MatrixElement>(
    loaded: &LoadedOperations,
    called: &'static Called,
    c: Matrix<'_, T>,
    beta: Option<f64>,
) -> Result<Described<'static>> {
    check_ready(loaded.gpu(), called.call)?;
    check_operand(loaded.gpu(), called.call, called.result, BufferBytes::of(c.buffer))?;
    c.check_room(called.call, called.result)?;
    let a = Matrix { rows: c.rows, columns: 0, ..c };
    let b = Matrix { rows: 0, columns: c.columns, ..c };
    let product = MatmulCall::new(loaded, a, b, c);
    let product = match beta {
        Some(beta) => product.beta(beta),
        None => product,
    };
    let described = product.described_for(called.call).map_err(|error| called.renamed(error))?;
    Ok(described.called(called).into_held())
}

fn gemv<'a, T: Real>(
    loaded: &LoadedOperations,
    (alpha, beta): (f64, Option<f64>),
    a: &Matrix<'a, T>,
    (x, y): (&Vector<'a, T>, &Vector<'a, T>),
) -> Result<Described<'a>> {
    check_lengths(Gemv::NAME, a, (a.columns, a.rows), (x, y))?;
    let ((m, n), beta) = (a.stored(), accumulated(Gemv::NAME, T::TYPE, beta)?);
    let alpha = scalar(Gemv::NAME, "alpha", T::TYPE, alpha)?;
    let operation = Gemv {
        element: T::TYPE,
        m,
        n,
        transposed: !a.by_columns,
        leading: a.distance(),
        x_step: x.step,
        y_step: y.step,
        accumulate: beta.is_some(),
    };
    let operands = || Operands::of(Gemv::NAME).with("a", a.buffer).with("x", x.buffer).with("y", y.buffer);
    if a.rows == 0 {
        return Described::nothing(loaded, operation, &operands());
    }
    if a.columns == 0 {
        operands().check(loaded.gpu())?;
        y.check_step(Gemv::NAME, "y")?;
        let column = Matrix::new(y.buffer, a.rows as usize, 1).leading(y.step as usize);
        return without_terms(loaded, &GEMV, column, beta);
    }
    a.check_leading(Gemv::NAME, "a")?;
    let buffers = [memory(a.buffer), memory(x.buffer), memory(y.buffer), Ok(alpha)];
    Described::new(operation, buffers.into_iter().chain(beta.map(|beta| Ok(Argument::Scalar(beta)))))
}

/// What is stored is the matrix or its transpose, and the transpose of `x yᵀ` is `y xᵀ`.
fn ger<'a, T: Real>(
    loaded: &LoadedOperations,
    alpha: f64,
    x: Vector<'a, T>,
    y: Vector<'a, T>,
    a: &Matrix<'a, T>,
) -> Result<Described<'a>> {
    check_lengths(Ger::NAME, a, (a.rows, a.columns), (&x, &y))?;
    let alpha = scalar(Ger::NAME, "alpha", T::TYPE, alpha)?;
    let operands = Operands::of(Ger::NAME).with("x", x.buffer).with("y", y.buffer).with("a", a.buffer);
    let (m, n) = a.stored();
    let (x, y) = if a.by_columns { (x, y) } else { (y, x) };
    let operation = Ger { element: T::TYPE, m, n, leading: a.distance(), x_step: x.step, y_step: y.step };
    if m == 0 || n == 0 {
        return Described::nothing(loaded, operation, &operands);
    }
    a.check_leading(Ger::NAME, "a")?;
    let described =
        Described::new(operation, [memory(x.buffer), memory(y.buffer), memory(a.buffer), Ok(alpha)])?;
    Ok(if a.by_columns { described } else { described.called(&GER_OF_ROWS) })
}
