//! A launch of a matrix product whose operation is loaded: what is compared and queued at each call, with the description left out.

use std::ops::Range;
use std::panic::Location;

use kiln_operation::Matmul;
use kiln_runtime::internal::{BufferBytes, in_call, pass_bytes, submit_in_call};
use kiln_runtime::{GpuRef, Result, Stream, Ticket};

use super::element::MatrixElement;
use crate::loaded_operation::LoadedOperation;
use crate::loaded_operations::LoadedOperations;
use crate::operand_fit::OperandFit;
use crate::operands::Operands;

/// A product with its buffers, as it is stored: column after column.
pub(super) struct ProductLaunch<'l, O: MatrixElement> {
    pub(super) known: &'l LoadedOperations,
    pub(super) operation: &'l LoadedOperation,
    pub(super) factors: [BufferBytes<'l>; 2],
    pub(super) result: BufferBytes<'l>,
    pub(super) bias: Option<&'l GpuRef<O>>,
    /// Scale factors of both factors.
    pub(super) scales: Option<[&'l GpuRef<f32>; 2]>,
    pub(super) alpha: f64,
    pub(super) beta: Option<f64>,
    /// Whether the first factor is the second of the call.
    pub(super) is_exchanged: bool,
}

impl<'l, O: MatrixElement> ProductLaunch<'l, O> {
    /// Queues the product. None where its buffers do not fit, or it is refused: the ordinary call says why, or does it otherwise.
    #[inline]
    #[track_caller]
    pub(super) fn submit(&'l self, stream: Option<&'l Stream>) -> Option<Ticket> {
        let [first, second, result, ..] = self.operation.operands.as_slice() else { return None };
        if !self.fits([first, second, result]) {
            return None;
        }
        let gpu = self.known.gpu();
        let _scope = in_call(gpu, Matmul::NAME, Location::caller(), || self.addresses());
        let workspace = match self.operation.workspace_bytes {
            0 => None,
            bytes => {
                let key = stream.map_or_else(|| self.result.home(gpu), Stream::key);
                Some(self.known.workspaces.take(gpu, key, bytes).ok()?)
            }
        };
        // In a block, and not dropped by name: the launch is long, and moving it takes as much time as filling it.
        let submitted: Result<Ticket> = {
            let mut launch = gpu.launch(&self.operation.kernel);
            if let Some(stream) = stream {
                launch.on(stream);
            }
            launch.grid(1).block(1);
            let [left, right] = self.factors;
            pass_bytes(&mut launch, left.first(first.bytes), first.access());
            pass_bytes(&mut launch, right.first(second.bytes), second.access());
            pass_bytes(&mut launch, self.result.first(result.bytes), result.access());
            if let Some(bias) = self.bias {
                launch.read(bias);
            }
            if let Some([left, right]) = self.scales {
                // The first of each.
                pass_bytes(&mut launch, scale_bytes(left), kiln_driver::Access::Read);
                pass_bytes(&mut launch, scale_bytes(right), kiln_driver::Access::Read);
            }
            launch.value(self.alpha);
            if let Some(beta) = self.beta {
                launch.value(beta);
            }
            if let Some(workspace) = &workspace {
                launch.write(&workspace.buffer);
            }
            // SAFETY: the operands lie inside of the buffers that are given, with the effects that are declared, and the operation ends.
            unsafe { submit_in_call(&mut launch, Matmul::NAME) }
        };
        if let Some(workspace) = workspace {
            self.known.workspaces.keep(workspace);
        }
        submitted.ok()
    }

    /// Where the operands lie, under the names of the caller.
    #[cold]
    fn addresses(&self) -> Vec<(&'static str, Range<u64>)> {
        let ([left, right], scales) = (self.factors, self.scales);
        let (a, b) = if self.is_exchanged { (right, left) } else { (left, right) };
        let operands = Operands::of(Matmul::NAME).with_bytes("a", a).with_bytes("b", b);
        let operands = operands.with_bytes("c", self.result).with_some("bias", self.bias);
        let scale = |at: usize| scales.and_then(|scales| scales.get(at).copied());
        let (first, second) = if self.is_exchanged { (1, 0) } else { (0, 1) };
        operands.with_some("a_scale", scale(first)).with_some("b_scale", scale(second)).addresses()
    }

    /// Whether the buffers can be used as they are: long enough, aligned as those that the algorithm was chosen for, and apart from the result.
    #[inline]
    fn fits(&self, [first, second, result]: [&OperandFit; 3]) -> bool {
        let is_usable = |bytes: &BufferBytes<'_>, fit: &OperandFit| {
            bytes.len() >= fit.bytes && bytes.address().0 & fit.alignment_mask == 0
        };
        let written = self.result.first(result.bytes);
        let is_apart = |bytes: BufferBytes<'_>| !bytes.overlaps(&written);
        let [left, right] = &self.factors;
        is_usable(left, first)
            && is_usable(right, second)
            && is_usable(&self.result, result)
            && is_apart(left.first(first.bytes))
            && is_apart(right.first(second.bytes))
            && self.bias.is_none_or(|bias| is_apart(BufferBytes::of(bias)))
            && self.scales.is_none_or(|scales| {
                scales.iter().all(|scale| scale.len() == 1 && is_apart(scale_bytes(scale)))
            })
    }
}

/// The bytes of a scale factor, which is the first element of its buffer.
fn scale_bytes(scale: &GpuRef<f32>) -> BufferBytes<'_> {
    BufferBytes::of(scale).first(size_of::<f32>() as u64)
}
