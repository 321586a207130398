//! A matrix product that is checked once and queued often.
//!
//! An ordinary call describes its product anew: shapes, types and layouts, by which it finds the operation that is loaded. A loop that queues the same product
//! with other buffers needs none of that: what is left to compare are the lengths and addresses of three buffers.

use kiln_operation::{Matmul, OperationOperand};
use kiln_runtime::internal::BufferBytes;
use kiln_runtime::{GpuRef, Stream, Ticket};

use super::element::MatrixElement;
use super::matmul::MatmulCall;
use super::matrix::Matrix;
use super::product_launch::ProductLaunch;
use crate::Result;
use crate::call_state::check_stream;
use crate::described::Described;
use crate::loaded_operation::LoadedOperation;
use crate::loaded_operations::LoadedOperations;

/// A matrix product that was checked and loaded by [`MatmulCall::prepare`]. Shapes, layouts, factors, epilogue, bias and scale factors are those of the call;
/// each [`submit`](Self::submit) names the buffers of the three matrices, which begin where the buffers do.
///
/// ```
/// use kiln::DeviceRuntime;
/// use kiln_libs::blas::{Blas, Matrix};
///
/// let gpu = DeviceRuntime::simulated(1)?;
/// let blas = Blas::new(&gpu);
/// let weights = gpu.upload(&[2.0_f32, 0.0, 0.0, 2.0])?;
/// let states = [gpu.upload(&[1.0_f32; 4])?, gpu.allocate::<f32>(4)?];
/// let square = |buffer| Matrix::new(buffer, 2, 2);
/// let step = blas.matmul(square(&weights), square(&states[0]), square(&states[1])).prepare()?;
/// for round in 0..3 {
///     step.submit(&weights, &states[round % 2], &states[(round + 1) % 2])?;
/// }
/// assert_eq!(states[1].download()?, [8.0; 4]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct PreparedMatmul<'a, T: MatrixElement, O: MatrixElement> {
    loaded: &'a LoadedOperations,
    /// What is loaded for the product; none where there is no product to compute, because it has no elements, no terms, or a factor of 0.
    operation: Option<&'a LoadedOperation>,
    /// Whether the first factor as it is stored is the second of the call.
    is_exchanged: bool,
    alpha: f64,
    beta: Option<f64>,
    /// The call that it was made of.
    call: MatmulCall<'a, T, O>,
}

impl<'a, T: MatrixElement, O: MatrixElement> MatmulCall<'a, T, O> {
    /// The product, refused as [`submit`](Self::submit) refuses it, in the same order: shapes and numbers, the device and the stream, sizes and buffers, and the
    /// first buffer that cannot be used. With the operands of the operation, of which there are none where there is nothing to do.
    pub(super) fn checked(&self) -> Result<(Described<'a>, Vec<OperationOperand>)> {
        let gpu = self.loaded().gpu();
        self.check_shapes()?;
        self.checked_alpha()?;
        self.accumulated()?;
        check_stream(gpu, Matmul::NAME, self.stream())?;
        let described = self.described()?;
        if described.is_empty {
            return Ok((described, Vec::new()));
        }
        let operands = described.check()?;
        described.check_usable(gpu)?;
        Ok((described, operands))
    }
}

impl<'a, T: MatrixElement, O: MatrixElement> PreparedMatmul<'a, T, O> {
    pub(super) fn new(call: MatmulCall<'a, T, O>, loaded: &'a LoadedOperations) -> Result<Self> {
        let (described, operands) = call.checked()?;
        let (alpha, beta) = (call.checked_alpha()?, call.accumulated()?);
        let operation = match call.is_product(alpha) {
            true => {
                let found = loaded.load(&described.operation, &operands);
                Some(found.map_err(|error| error.told_of(described.call()))?)
            }
            false => None,
        };
        let is_exchanged = described.names.is_exchanged;
        Ok(Self { loaded, operation, is_exchanged, alpha, beta, call })
    }

    /// Queues the product of two buffers into a third, as [`MatmulCall::submit`] does.
    ///
    /// # Errors
    /// As for [`MatmulCall::submit`].
    #[inline]
    #[track_caller]
    pub fn submit(&self, a: &GpuRef<T>, b: &GpuRef<T>, c: &GpuRef<O>) -> Result<Ticket> {
        self.submit_to(self.call.stream(), a, b, c)
    }

    /// The same on a stream.
    ///
    /// # Errors
    /// As for [`MatmulCall::submit`].
    #[inline]
    #[track_caller]
    pub fn submit_on(&self, stream: &Stream, a: &GpuRef<T>, b: &GpuRef<T>, c: &GpuRef<O>) -> Result<Ticket> {
        self.submit_to(Some(stream), a, b, c)
    }

    #[track_caller]
    fn submit_to(
        &self,
        stream: Option<&Stream>,
        a: &GpuRef<T>,
        b: &GpuRef<T>,
        c: &GpuRef<O>,
    ) -> Result<Ticket> {
        // No closure: the line of the caller would be lost in it.
        let Some(operation) = self.operation else { return self.submit_anew(stream, a, b, c) };
        let queued = {
            let (first, second) = if self.is_exchanged { (b, a) } else { (a, b) };
            let launch = ProductLaunch {
                known: self.loaded,
                operation,
                factors: [BufferBytes::of(first), BufferBytes::of(second)],
                result: BufferBytes::of(c),
                bias: self.call.bias_buffer(),
                scales: self.call.stored_scales(),
                alpha: self.alpha,
                beta: self.beta,
                is_exchanged: self.is_exchanged,
            };
            launch.submit(stream)
        };
        match queued {
            Some(ticket) => Ok(ticket),
            None => self.submit_anew(stream, a, b, c),
        }
    }

    /// The ordinary call: for buffers with another alignment, and to say what is wrong.
    #[cold]
    #[track_caller]
    fn submit_anew(
        &self,
        stream: Option<&Stream>,
        a: &GpuRef<T>,
        b: &GpuRef<T>,
        c: &GpuRef<O>,
    ) -> Result<Ticket> {
        let matrices = self.call.matrices();
        let (a, b) = (Matrix { buffer: a, ..matrices.0 }, Matrix { buffer: b, ..matrices.1 });
        self.call.with_matrices((a, b, Matrix { buffer: c, ..matrices.2 }), stream).submit()
    }
}

impl<T: MatrixElement, O: MatrixElement> std::fmt::Debug for PreparedMatmul<'_, T, O> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.operation {
            Some(loaded) => write!(f, "prepared {}", loaded.operation),
            None => f.write_str("prepared product without terms"),
        }
    }
}
