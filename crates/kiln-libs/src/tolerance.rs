//! How far results of devices may differ.

use kiln_operation::{Activation, ElementType, Math, Operation};

/// How far the result of an operation may lie from the exact one, on any device.
///
/// The bound of an element is a multiple of a magnitude that the caller computes from the inputs, and the rounding of the element itself:
///
/// | operation | magnitude |
/// |---|---|
/// | matmul, gemv, ger, syrk, symm, trmm, geam, spmv, spmm | the same with absolute values: `\|alpha\| \|A\| \|B\| + \|beta C\| + \|bias\|` |
/// | dot | `Σ \|x\| \|y\|` |
/// | nrm2, asum, axpy, scal | the same with absolute values |
/// | copy, swap | any: elements are what they were |
/// | convolution and its gradients | the sum of the absolute values of all products |
/// | attention | `(1 + s) Σ p \|v\|` with the weights `p` of the query, and `s` the greatest of its `scale Σ \|q\| \|k\|` |
/// | trsm | `\|A\| \|X\| + \|alpha B\|`; what is bounded is the residual `A X - alpha B` |
/// | potrf, getrf, geqrf | `‖A‖₁`; what is bounded is the norm of the difference of `A` and the product of its factors |
/// | potrs, getrs | `‖A‖₁ ‖x‖₁`; what is bounded is the norm of the residual `A x - b` |
/// | ormqr | `‖C‖₁`; what is bounded is the norm of the difference of `Qᵀ Q C` and `C` |
/// | orgqr | 1; what is bounded is the norm `‖QᵀQ - 1‖₁` |
/// | syevd, gesvd | `‖A‖₁`, for values and for residuals such as `A v - λ v` |
/// | fft | the length `‖X‖₂` of the spectrum, or of the result of an inverse transform |
/// | softmax | `y (1 + d)` with the distance `d` of the element from the greatest of its row; of logarithms `1 + d + log Σ exp(-d)` |
/// | softmax_backward | `y (\|dy\| + Σ \|y dy\|)`; of logarithms `\|dy\| + exp(y) (1 + \|y\|) Σ \|dy\|` |
/// | layer_norm, rms_norm | `\|w\| (1 + \|n\|) (1 + s (\|x\| + a)) + \|bias\|` with the normal value `n`, the weight `w`, the scale `s` of the row and the average `a` of its `\|x\|` |
/// | their gradients, of the means and scales that are given | of `dx`: `s (\|g\| + a + \|n\| p)` with `g = w dy`, and the averages `a` of `\|g\|` and `p` of `\|g n\|`; of weight and bias: `Σ \|dy n\|` and `Σ \|dy\|` |
/// | average_pool, and gradients of pools | the same with absolute values |
/// | elementwise functions | `\|x\| + \|f(x)\|` |
/// | their gradients | `\|dy\| (1 + \|x\|) (1 + \|f'(x)\|)` |
/// | elementwise sums, products and quotients | the same with absolute values |
/// | cross_entropy | `1 + d + log Σ exp(-d)` with the distances `d` of elements from the greatest of their row: that of the label, and in the sum those of all |
/// | cross_entropy_backward | `\|dl\| (p (1 + d) + t)` with the share `p` of the element, and `t` 1 for the label and 0 for others |
/// | embedding | any: rows are copied, and the bound is 0 |
/// | embedding_backward | the same with absolute values |
/// | max_pool | any: elements are chosen, and the bound is 0 |
///
/// Two devices differ by at most twice the bound.
///
/// ```
/// use kiln_libs::Tolerance;
/// use kiln_libs::operation::Operation;
///
/// let dot: Operation = "blas.dot element=f32 n=1000 x_step=1 y_step=1".parse()?;
/// let bound = Tolerance::of(&dot).bound(1000.0, 3.0);
/// assert!(bound > 0.05 && bound < 0.07);
/// # Ok::<(), kiln_libs::operation::OperationError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Tolerance {
    /// For each unit of the magnitude.
    pub relative: f64,
    /// For each unit of the exact result: the rounding to its type.
    pub rounding: f64,
    /// Below this every result is the same to the type: its smallest normal number.
    pub absolute: f64,
}

/// The length of a spectrum is lost by so many roundings for each halving.
const FFT_FACTOR: f64 = 5.0;
/// What the tests of LAPACK allow: so many roundings for each row or column.
const SOLVER_RATIO: f64 = 30.0;

/// What two inputs lose that are rounded to 11 bits.
const TF32_INPUTS: f64 = 2.0 / 2048.0;

/// Roundings of attention beyond its sums: powers, quotients, and factors for parts.
const ATTENTION_STEPS: u64 = 64;

/// The steepest slope of GELU, and how far the approximate hyperbolic tangent of a GPU may be off.
const GELU_SLOPE: f64 = 1.13;
const GELU_ERROR: f64 = 1.0 / 1024.0;

/// An operation whose error has a bound: [`Operation`] or [`KernelOperation`](crate::KernelOperation).
pub trait BoundedError {
    /// The bound, as [`Tolerance::of`] gives it.
    fn tolerance(&self) -> Tolerance;
}

impl Tolerance {
    /// The tolerance of an operation.
    pub fn of(operation: &impl BoundedError) -> Self {
        operation.tolerance()
    }

    /// The tolerance of a sum in `f32`, or in `f64` for that type, that is rounded to a type.
    pub(crate) fn of_sum(count: u64, element: ElementType) -> Self {
        let added_in = if element == ElementType::F64 { ElementType::F64 } else { ElementType::F32 };
        let relative = terms(count, added_in);
        Self { relative, rounding: element.unit_roundoff(), absolute: smallest(element) }
    }

    fn of_library(operation: &Operation) -> Self {
        let (relative, element) = match operation {
            Operation::Matmul(matmul) => {
                let terms = matmul.k as f64 + 2.0;
                let single = ElementType::F32.unit_roundoff();
                let relative = match (matmul.math, matmul.a.element) {
                    (_, ElementType::I8) => 0.0,
                    (Math::Tf32, _) => terms * single + 2.0 * ElementType::F16.unit_roundoff(),
                    (Math::F16, _) => terms * ElementType::F16.unit_roundoff(),
                    (_, ElementType::F64) => terms * ElementType::F64.unit_roundoff(),
                    // Sums of 8-bit products are kept in fewer bits than f32 has.
                    (_, ElementType::F8E4M3) => terms * single + 2.0_f64.powi(-13),
                    _ => terms * single,
                };
                let relative = match matmul.epilogue.activation {
                    Activation::Gelu => GELU_SLOPE * relative + GELU_ERROR,
                    Activation::None | Activation::Relu => relative,
                };
                (relative, matmul.d.element)
            }
            Operation::Gemv(gemv) => (terms(gemv.lengths().0, gemv.element), gemv.element),
            Operation::Ger(ger) => (terms(1, ger.element), ger.element),
            Operation::Dot(dot) => (terms(dot.n, dot.element), dot.element),
            Operation::Nrm2(nrm2) => (terms(nrm2.n, nrm2.element), nrm2.element),
            Operation::Axpy(axpy) => (terms(1, axpy.element), axpy.element),
            Operation::Scal(scal) => (terms(1, scal.element), scal.element),
            Operation::VectorCopy(copy) => (0.0, copy.element),
            Operation::Swap(swap) => (0.0, swap.element),
            Operation::Asum(asum) => (terms(asum.n, asum.element), asum.element),
            Operation::Iamax(_) => (0.0, ElementType::I32),
            Operation::Syrk(syrk) => (terms(syrk.k, syrk.element), syrk.element),
            Operation::Trsm(trsm) => (terms(trsm.order(), trsm.element), trsm.element),
            Operation::Geam(geam) => (terms(2, geam.element), geam.element),
            Operation::Symm(symm) => (terms(symm.order(), symm.element), symm.element),
            Operation::Trmm(trmm) => (terms(trmm.order(), trmm.element), trmm.element),
            Operation::Fft(fft) => {
                let halvings: f64 =
                    fft.shape.extents().iter().map(|extent| (*extent as f64).log2().max(1.0)).sum();
                (FFT_FACTOR * halvings * fft.element.unit_roundoff(), fft.element)
            }
            Operation::Potrf(potrf) => (solver(potrf.n, potrf.element), potrf.element),
            Operation::Potrs(potrs) => (solver(potrs.n, potrs.element), potrs.element),
            Operation::Getrf(getrf) => (solver(getrf.m.max(getrf.n), getrf.element), getrf.element),
            Operation::Getrs(getrs) => (solver(getrs.n, getrs.element), getrs.element),
            Operation::Geqrf(geqrf) => (solver(geqrf.m.max(geqrf.n), geqrf.element), geqrf.element),
            Operation::Ormqr(ormqr) => (solver(ormqr.order(), ormqr.element), ormqr.element),
            Operation::Orgqr(orgqr) => (solver(orgqr.m, orgqr.element), orgqr.element),
            Operation::Syevd(syevd) => (solver(syevd.n, syevd.element), syevd.element),
            Operation::Gesvd(gesvd) => (solver(gesvd.m.max(gesvd.n), gesvd.element), gesvd.element),
            Operation::Spmv(spmv) => (terms(spmv.lengths().0.min(spmv.nonzeros), spmv.element), spmv.element),
            Operation::Spmm(spmm) => {
                (terms(spmm.dense_rows().0.min(spmm.nonzeros), spmm.element), spmm.element)
            }
            Operation::Convolution(convolution) => {
                let sums = terms(convolution.terms(), ElementType::F32);
                let inputs = if convolution.math == Math::Tf32 { TF32_INPUTS } else { 0.0 };
                (sums + inputs, convolution.element)
            }
            Operation::Attention(attention) => {
                // Weights are rounded to the type of the tensors before they are multiplied with values.
                let sums = terms(attention.head + attention.keys + ATTENTION_STEPS, ElementType::F32);
                (sums + 2.0 * attention.element.unit_roundoff(), attention.element)
            }
            Operation::SparseToDense(to_dense) => (0.0, to_dense.element),
            _ => (f64::INFINITY, ElementType::F64),
        };
        Self { relative, rounding: element.unit_roundoff(), absolute: smallest(element) }
    }

    /// How far an element may lie from the exact value, with the magnitude that belongs to it. Both are finite: an infinity has an infinite bound, so that where the exact
    /// value is one, or NaN, an element is right if it is the same.
    pub fn bound(&self, magnitude: f64, exact: f64) -> f64 {
        self.relative * magnitude.abs() + self.rounding * exact.abs() + self.absolute
    }
}

impl BoundedError for Operation {
    fn tolerance(&self) -> Tolerance {
        Tolerance::of_library(self)
    }
}

/// Sums of so many products.
fn terms(count: u64, element: ElementType) -> f64 {
    (count as f64 + 2.0) * element.unit_roundoff()
}

/// A factorisation or iteration of a matrix with so many rows or columns.
fn solver(order: u64, element: ElementType) -> f64 {
    SOLVER_RATIO * order as f64 * element.unit_roundoff()
}

/// The smallest normal number of a type; 0 for integers.
fn smallest(element: ElementType) -> f64 {
    match element {
        ElementType::F8E4M3 => 2.0_f64.powi(-6),
        ElementType::F16 => 2.0_f64.powi(-14),
        ElementType::Bf16 | ElementType::F32 => 2.0_f64.powi(-126),
        ElementType::F64 => 2.0_f64.powi(-1022),
        _ => 0.0,
    }
}
