//! Matrix products.

use kiln_operation::{Activation, Determinism, ElementType, Epilogue, Layout, Math, Matmul, Operation};
use kiln_runtime::internal::BufferBytes;
use kiln_runtime::{GpuRef, GraphBuilder, NodeId, Stream, Ticket};

use super::element::MatrixElement;
use super::matrix::Matrix;
use super::prepared_matmul::PreparedMatmul;
use super::product_launch::ProductLaunch;
use super::tuning::{self, MatmulTuning};
use crate::Result;
use crate::call_state::{check_graph, check_stream};
use crate::described::{Described, OperandNames};
use crate::error::LibraryError;
use crate::library_call::{LibraryCall, submit_described};
use crate::loaded_operations::LoadedOperations;
use crate::operands::Operands;
use crate::scalar_argument;

/// Workspace at most, unless a call says otherwise.
const WORKSPACE_LIMIT_BYTES: u64 = 32 << 20;
/// Alignments of addresses that algorithms are chosen for.
const ALIGNMENTS: [u64; 2] = [256, 16];

/// A matrix product that is being described: `C = activation(alpha A B + beta C + bias)`.
///
/// Where `A` has no columns, the product counts as zeros. Where `C` has no elements, nothing is done.
///
/// Products of `i8` are added up in integers of 32 bits, and so are `alpha` times the sum and `beta C`. Nothing is saturated and nothing is told: what
/// passes the range of `i32` wraps, as with [`i32::wrapping_add`]. Sums of up to 131,071 terms fit, because a term is 16,384 at most; with more terms, or with a
/// factor, the values decide.
///
/// ```
/// use kiln::DeviceRuntime;
/// use kiln_libs::blas::{Blas, Math, Matrix};
///
/// let gpu = DeviceRuntime::simulated(1)?;
/// let blas = Blas::new(&gpu);
/// let weights = gpu.upload(&[1.0_f32, 2.0, 3.0, 4.0])?; // 2 outputs, 2 inputs
/// let inputs = gpu.upload(&[1.0_f32, 1.0, 0.0, 2.0, 5.0, 5.0])?; // a batch of 3
/// let bias = gpu.upload(&[10.0_f32, 20.0])?;
/// let outputs = gpu.allocate::<f32>(6)?;
/// blas.matmul(
///     Matrix::new(&inputs, 3, 2),
///     Matrix::new(&weights, 2, 2).transposed(),
///     Matrix::new(&outputs, 3, 2),
/// )
/// .bias(&bias)
/// .math(Math::Tf32)
/// .submit()?;
/// assert_eq!(outputs.download()?, [13.0, 27.0, 14.0, 28.0, 25.0, 55.0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
#[must_use = "nothing is computed until `submit` or `record`"]
pub struct MatmulCall<'a, T: MatrixElement, O: MatrixElement> {
    loaded: &'a LoadedOperations,
    a: Matrix<'a, T>,
    b: Matrix<'a, T>,
    c: Matrix<'a, O>,
    alpha: f64,
    beta: Option<f64>,
    bias: Option<&'a GpuRef<O>>,
    /// Scale factors of `A` and of `B`.
    scales: Option<[&'a GpuRef<f32>; 2]>,
    activation: Activation,
    math: Math,
    determinism: Determinism,
    workspace_limit_bytes: u64,
    stream: Option<&'a Stream>,
    /// The alignment and the algorithm that are measured; otherwise those of the buffers, and the library's choice.
    measured: Option<(u64, u64)>,
}

impl<'a, T: MatrixElement, O: MatrixElement> MatmulCall<'a, T, O> {
    pub(super) fn new(
        loaded: &'a LoadedOperations,
        a: Matrix<'a, T>,
        b: Matrix<'a, T>,
        c: Matrix<'a, O>,
    ) -> Self {
        Self {
            loaded,
            a,
            b,
            c,
            alpha: 1.0,
            beta: None,
            bias: None,
            scales: None,
            activation: Activation::None,
            math: Math::Ieee,
            determinism: Determinism::Any,
            workspace_limit_bytes: WORKSPACE_LIMIT_BYTES,
            stream: None,
            measured: None,
        }
    }

    /// Multiplies the product by a number. It is rounded to the type that the library scales with: `f64` for `f64`, `f16` with [`Math::F16`], otherwise `f32`;
    /// for products of `i8` it must be an integer of 32 bits, and the product with it wraps. With 0, `A`, `B` and their scale factors are not read: a NaN in them does not reach the result.
    pub fn alpha(self, alpha: f64) -> Self {
        Self { alpha, ..self }
    }

    /// Adds a multiple of what `C` holds; the number is treated as [`alpha`](Self::alpha). Without this, and with 0, `C` is not read.
    pub fn beta(self, beta: f64) -> Self {
        Self { beta: Some(beta), ..self }
    }

    /// Adds a vector to each row of `C`: it has an element for each column. `C` must be stored row after row.
    pub fn bias(self, bias: &'a GpuRef<O>) -> Self {
        Self { bias: Some(bias), ..self }
    }

    /// Multiplies all elements of `A` with one number and those of `B` with another, which lie in device memory, each in a buffer of one element: what 8-bit numbers were divided by when they were
    /// rounded. Only for [`F8E4M3`](super::F8E4M3); use [`alpha`](Self::alpha) for other types.
    pub fn scales(self, a: &'a GpuRef<f32>, b: &'a GpuRef<f32>) -> Self {
        Self { scales: Some([a, b]), ..self }
    }

    /// Applies a function to each element before it is stored.
    pub fn activation(self, activation: Activation) -> Self {
        Self { activation, ..self }
    }

    /// How products are computed; [`Math::Ieee`] unless something else is said.
    pub fn math(self, math: Math) -> Self {
        Self { math, ..self }
    }

    /// Whether equal calls give equal bits.
    pub fn determinism(self, determinism: Determinism) -> Self {
        Self { determinism, ..self }
    }

    /// Workspace at most; 32 MiB unless something else is said.
    pub fn workspace_limit_bytes(self, bytes: u64) -> Self {
        Self { workspace_limit_bytes: bytes, ..self }
    }

    /// The stream to run on. Otherwise it is the home of `C`.
    pub fn on(self, stream: &'a Stream) -> Self {
        Self { stream: Some(stream), ..self }
    }

    /// The operation, for [`Tolerance::of`](crate::Tolerance::of) and for messages.
    ///
    /// # Errors
    /// What is wrong with the call.
    pub fn operation(self) -> Result<Operation> {
        self.call().operation()
    }

    /// Loads the operation; see [`LibraryCall::load`].
    ///
    /// # Errors
    /// As for [`LibraryCall::load`].
    pub fn load(self) -> Result<u64> {
        self.checked()?;
        self.call().load()
    }

    /// Queues the product; see [`LibraryCall::submit`].
    ///
    /// # Errors
    /// As for [`LibraryCall::submit`].
    #[track_caller]
    pub fn submit(self) -> Result<Ticket> {
        match self.submit_loaded()? {
            Some(ticket) => Ok(ticket),
            None => {
                check_stream(self.loaded.gpu(), Matmul::NAME, self.stream)?;
                submit_described(self.loaded, &self.described()?, self.stream)
            }
        }
    }

    /// Checks and loads the product once, for a loop that queues it often: [`PreparedMatmul::submit`] takes the buffers, and costs the host less than a
    /// call that describes the product anew. Of the buffers of this call only bias and scale factors are used. It uses the algorithm that is chosen now, so
    /// [`tune`](Self::tune) before.
    ///
    /// # Errors
    /// As for [`LibraryCall::load`]: buffers and a stream of this call that do not fit or belong to another runtime, and a device that is lost or was shut
    /// down, are told here.
    pub fn prepare(self) -> Result<PreparedMatmul<'a, T, O>> {
        let loaded = self.loaded;
        PreparedMatmul::new(self, loaded)
    }

    /// Makes the product a node of a graph; see [`LibraryCall::record`].
    ///
    /// # Errors
    /// As for [`LibraryCall::record`].
    pub fn record(self, graph: &mut GraphBuilder) -> Result<NodeId> {
        check_graph(self.loaded.gpu(), Matmul::NAME, graph, self.stream)?;
        self.call().record(graph)
    }

    /// Chooses the algorithm of this product by measuring those that the library proposes, and uses it for all equal calls of this [`Blas`](super::Blas)
    /// from now on: equal shapes, layouts, types, math and alignment, with any buffers. The choice is kept on disk with compiled code, so that the
    /// next process that asks for it measures nothing.
    ///
    /// The inputs are read and the result is written to temporary memory, so that `C` does not change. Takes some milliseconds for each algorithm;
    /// graphs that were recorded before keep theirs. A product without elements is not measured: its times are 0. Another algorithm may round differently: sums are made in another order.
    ///
    /// ```
    /// use kiln::DeviceRuntime;
    /// use kiln_libs::blas::{Blas, Matrix};
    ///
    /// let gpu = DeviceRuntime::simulated(1)?;
    /// let blas = Blas::new(&gpu);
    /// let (a, b) = (gpu.upload(&[1.0_f32; 64])?, gpu.upload(&[2.0_f32; 64])?);
    /// let c = gpu.allocate::<f32>(64)?;
    /// let product = || blas.matmul(Matrix::new(&a, 8, 8), Matrix::new(&b, 8, 8), Matrix::new(&c, 8, 8));
    /// let tuned = product().tune()?;
    /// assert!(tuned.time <= tuned.default_time);
    /// product().submit()?; // with the algorithm that was the fastest
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As for [`LibraryCall::submit`], and too little memory for a second result. The algorithm stays as it was.
    pub fn tune(self) -> Result<MatmulTuning> {
        let (described, _) = self.checked()?;
        if self.is_empty() {
            return Ok(MatmulTuning::NOTHING);
        }
        let Operation::Matmul(operation) = described.operation()? else {
            return Err(LibraryError::argument(Matmul::NAME, "no matrix product", "tune a matrix product"));
        };
        let loaded = self.loaded;
        let kept = MatmulTuning::kept(loaded, &operation).transpose();
        let tuned = kept.unwrap_or_else(|| self.measure(&operation));
        tuned.map_err(|error| tuning::told(loaded.gpu(), error))
    }

    /// Measures the algorithms of a product that was checked, with another result.
    fn measure(self, operation: &Matmul) -> Result<MatmulTuning> {
        let elements = self.c.reach().min(self.c.buffer.len() as u128) as usize;
        let scratch = self.loaded.gpu().allocate::<O>(elements)?;
        if operation.accumulate {
            scratch.fill(bytemuck::Zeroable::zeroed())?;
        }
        MatmulTuning::measure(self.loaded, operation, |algorithm, graph| {
            let c = Matrix { buffer: &scratch, ..self.c };
            let measured =
                MatmulCall { c, measured: Some((operation.alignment, algorithm)), stream: None, ..self };
            measured.call().record(graph).map(drop)
        })
    }

    /// Queues a product whose operation is loaded, without a description of it. None where it is not loaded, or the buffers do not fit.
    #[inline]
    #[track_caller]
    fn submit_loaded(&self) -> Result<Option<Ticket>> {
        self.check_shapes()?;
        let alpha = self.checked_alpha()?;
        if !self.is_product(alpha) {
            return Ok(None);
        }
        let operation = Operation::from(self.stored_product()?);
        // The operation was checked when it was loaded.
        let Some(found) = self.loaded.find(&operation) else { return Ok(None) };
        let (first, second) = if self.c.by_columns { (&self.a, &self.b) } else { (&self.b, &self.a) };
        let launch = ProductLaunch {
            known: self.loaded,
            operation: found,
            factors: [BufferBytes::of(first.buffer), BufferBytes::of(second.buffer)],
            result: BufferBytes::of(self.c.buffer),
            bias: self.bias,
            scales: self.stored_scales(),
            alpha,
            beta: self.accumulated()?,
            is_exchanged: !self.c.by_columns,
        };
        Ok(launch.submit(self.stream))
    }

    fn call(self) -> LibraryCall<'a> {
        let call = LibraryCall::new(self.loaded, self.described());
        match self.stream {
            Some(stream) => call.on(stream),
            None => call,
        }
    }

    pub(super) fn described(&self) -> Result<Described<'a>> {
        self.described_for(Matmul::NAME)
    }

    /// The product of a call of another name, which is told where memory is missing.
    pub(super) fn described_for(&self, call: &'static str) -> Result<Described<'a>> {
        self.check_shapes()?;
        let alpha = self.checked_alpha()?;
        let operation = self.stored_product()?;
        if self.is_empty() {
            return Described::nothing(self.loaded, operation, &self.operands());
        }
        if self.a.columns == 0 {
            return self.without_terms(call);
        }
        self.check_matrices()?;
        // Where rows of C lie one after the other, its transpose is computed: Cᵀ = Bᵀ Aᵀ.
        let (first, second) = if self.c.by_columns { (self.a, self.b) } else { (self.b, self.a) };
        let mut described = Described::of(operation);
        described.names = self.names();
        described.push_memory(first.buffer);
        described.push_memory(second.buffer);
        described.push_memory(self.c.buffer);
        if let Some(bias) = self.bias {
            described.push_memory(bias);
        }
        if let Some([first, second]) = self.stored_scales() {
            described.push_memory(first);
            described.push_memory(second);
        }
        described.push_scalar(alpha);
        if let Some(beta) = self.accumulated()? {
            described.push_scalar(beta);
        }
        if alpha == 0.0 {
            // As in BLAS, the factors are not read then, and must still fit. cuBLASLt reads them, and a NaN in them would reach C.
            described.check()?;
            return self.without_terms(call);
        }
        Ok(described)
    }

    /// The factor of the product, as the library takes it.
    #[inline]
    pub(super) fn checked_alpha(&self) -> Result<f64> {
        scalar_argument::checked(Matmul::NAME, "alpha", self.scale(), self.alpha)
    }

    /// Whether there are elements and terms, and a factor that is not 0.
    pub(super) fn is_product(&self, alpha: f64) -> bool {
        !self.is_empty() && self.a.columns != 0 && alpha != 0.0
    }

    /// The stream that was named.
    pub(super) fn stream(&self) -> Option<&'a Stream> {
        self.stream
    }

    pub(super) fn bias_buffer(&self) -> Option<&'a GpuRef<O>> {
        self.bias
    }

    /// Scale factors of the factors as they are stored.
    pub(super) fn stored_scales(&self) -> Option<[&'a GpuRef<f32>; 2]> {
        let [a, b] = self.scales?;
        Some(if self.c.by_columns { [a, b] } else { [b, a] })
    }

    /// The factors and the result.
    pub(super) fn matrices(&self) -> (Matrix<'a, T>, Matrix<'a, T>, Matrix<'a, O>) {
        (self.a, self.b, self.c)
    }

    /// The same product of other matrices.
    pub(super) fn with_matrices<'b>(
        &'b self,
        (a, b, c): (Matrix<'b, T>, Matrix<'b, T>, Matrix<'b, O>),
        stream: Option<&'b Stream>,
    ) -> MatmulCall<'b, T, O> {
        MatmulCall { a, b, c, stream, ..*self }
    }

    /// The same product with scale factors of 1.
    pub(super) fn without_scales(self) -> Self {
        Self { scales: None, ..self }
    }

    /// Whether there is nothing to do.
    #[inline]
    fn is_empty(&self) -> bool {
        self.c.rows == 0 || self.c.columns == 0 || self.c.batch == 0
    }

    /// The buffers that were given.
    pub(super) fn operands(&self) -> Operands<'a> {
        let operands = Operands::of(Matmul::NAME).with("a", self.a.buffer).with("b", self.b.buffer);
        let [a_scale, b_scale] = [0, 1].map(|at| self.scales.and_then(|scales| scales.get(at).copied()));
        let operands = operands.with("c", self.c.buffer).with_some("bias", self.bias);
        operands.with_some("a_scale", a_scale).with_some("b_scale", b_scale)
    }

    pub(super) fn loaded(&self) -> &'a LoadedOperations {
        self.loaded
    }

    /// Refuses rows or columns that overlap, and buffers that are too short, in the caller's words.
    fn check_matrices(&self) -> Result<()> {
        self.a.check_line(Matmul::NAME, "a")?;
        self.b.check_line(Matmul::NAME, "b")?;
        self.c.check_line(Matmul::NAME, "c")?;
        // Sizes that do not fit are told as they were given.
        self.a.check_room(Matmul::NAME, "a")?;
        self.b.check_room(Matmul::NAME, "b")?;
        self.c.check_room(Matmul::NAME, "c")
    }

    /// The type of `alpha` and `beta`.
    fn scale(&self) -> ElementType {
        match (self.math, T::TYPE) {
            (Math::F16, _) => ElementType::F16,
            (_, ElementType::F64) => ElementType::F64,
            (_, ElementType::I8) => ElementType::I32,
            _ => ElementType::F32,
        }
    }

    /// The factor of what `C` holds, if it is read.
    pub(super) fn accumulated(&self) -> Result<Option<f64>> {
        scalar_argument::accumulated(Matmul::NAME, self.scale(), self.beta)
    }

    pub(super) fn check_shapes(&self) -> Result<()> {
        let (a, b, c) = (&self.a, &self.b, &self.c);
        let refuse = |what, hint| Err(LibraryError::argument(Matmul::NAME, what, hint));
        if a.columns != b.rows || c.rows != a.rows || c.columns != b.columns {
            let what = format!("{} times {} into {}", a.shape_text(), b.shape_text(), c.shape_text());
            return refuse(what, "give m x k, k x n and m x n");
        }
        if a.batch != c.batch || b.batch != c.batch {
            let what = format!("batches of {}, {} and {}", a.batch, b.batch, c.batch);
            return refuse(what, "give equal batches; a stride of 0 uses one input for all");
        }
        match self.bias {
            Some(_) if c.by_columns => refuse(
                "a bias for a result that is stored column after column".to_owned(),
                "store the result row after row",
            ),
            Some(bias) if bias.len() as u64 != c.columns => {
                let what = format!("a bias of {} elements for {} columns", bias.len(), c.columns);
                refuse(what, "give one element for each column of the result")
            }
            _ => Ok(()),
        }
    }

    /// How messages name the operands.
    pub(super) fn names(&self) -> OperandNames {
        OperandNames { is_exchanged: !self.c.by_columns, called: None }
    }

    /// The product as BLAS describes it.
    pub(super) fn stored_product(&self) -> Result<Matmul> {
        let (a, b, c) = (&self.a, &self.b, &self.c);
        let layout = |matrix: &Matrix<'_, T>, transposed| Layout {
            element: T::TYPE,
            transposed,
            leading: matrix.distance(),
            stride: if matrix.batch > 1 { matrix.matrix_stride() } else { 0 },
        };
        let d = Layout {
            element: O::TYPE,
            transposed: false,
            leading: c.distance(),
            stride: if c.batch > 1 { c.matrix_stride() } else { 0 },
        };
        let ((m, n), k) = (c.stored(), a.columns);
        let (first, second) = match c.by_columns {
            true => (layout(a, !a.by_columns), layout(b, !b.by_columns)),
            false => (layout(b, b.by_columns), layout(a, a.by_columns)),
        };
        Ok(Matmul {
            m,
            n,
            k,
            batch: c.batch,
            a: first,
            b: second,
            d,
            math: self.math,
            epilogue: Epilogue { bias: self.bias.is_some(), activation: self.activation },
            scaled: self.scales.is_some(),
            accumulate: self.accumulated()?.is_some(),
            order: self.determinism,
            workspace: self.workspace_limit_bytes,
            alignment: self.measured.map_or_else(|| self.alignment(), |(alignment, _)| alignment),
            algorithm: self.measured.map_or(0, |(_, algorithm)| algorithm),
        })
    }

    /// What all addresses are a multiple of, in steps, so that few algorithms are looked for.
    fn alignment(&self) -> u64 {
        let bias = self.bias.map_or(0, |bias| bias.address().0);
        let bits = self.a.buffer.address().0 | self.b.buffer.address().0 | self.c.buffer.address().0 | bias;
        let widest = |one: ElementType, other: ElementType| one.bytes().max(other.bytes());
        let found = ALIGNMENTS.into_iter().find(|alignment| bits.is_multiple_of(*alignment));
        found.unwrap_or_else(|| widest(T::TYPE, O::TYPE))
    }
}
