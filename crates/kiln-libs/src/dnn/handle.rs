//! `Dnn`: the entry point of all operations of neural networks on a device.

use kiln_operation::ConvolutionPass;
use kiln_runtime::DeviceRuntime;

use super::attention::{AttentionCall, AttentionTensor};
use super::convolution::ConvolutionCall;
use super::embedded_ptx::SHIPPED;
use super::tensor::{NetworkElement, Tensor};
use crate::loaded_operations::LoadedOperations;
use crate::prims::Primitives;

/// Neural networks on one device. It holds the operations and kernels that were used, and nothing else.
#[derive(Debug)]
pub struct Dnn {
    pub(super) loaded: LoadedOperations,
    /// Kernels of this crate.
    pub(super) kernels: Primitives,
}

impl Dnn {
    /// Neural networks on a device. Nothing is loaded yet.
    pub fn new(gpu: &DeviceRuntime) -> Self {
        Self { loaded: LoadedOperations::new(gpu), kernels: Primitives::of(gpu, SHIPPED) }
    }

    /// `y = x * w`: filters `[out, channels / groups, height, width]` applied to images. The filters are not flipped, as is usual for networks.
    pub fn convolution<'a, T: NetworkElement>(
        &'a self,
        x: Tensor<'a, T>,
        w: Tensor<'a, T>,
        y: Tensor<'a, T>,
    ) -> ConvolutionCall<'a, T> {
        ConvolutionCall::new(&self.loaded, ConvolutionPass::Forward, [x, w, y])
    }

    /// The gradient `dx` of a convolution with respect to its images, of the gradient `dy` of its result and its filters. It is also called a transposed
    /// convolution.
    pub fn convolution_backward_data<'a, T: NetworkElement>(
        &'a self,
        dy: Tensor<'a, T>,
        w: Tensor<'a, T>,
        dx: Tensor<'a, T>,
    ) -> ConvolutionCall<'a, T> {
        ConvolutionCall::new(&self.loaded, ConvolutionPass::BackwardData, [dx, w, dy])
    }

    /// The gradient `dw` of a convolution with respect to its filters, of its images and the gradient `dy` of its result.
    pub fn convolution_backward_filter<'a, T: NetworkElement>(
        &'a self,
        x: Tensor<'a, T>,
        dy: Tensor<'a, T>,
        dw: Tensor<'a, T>,
    ) -> ConvolutionCall<'a, T> {
        ConvolutionCall::new(&self.loaded, ConvolutionPass::BackwardFilter, [x, dw, dy])
    }

    /// `o = softmax(scale q kᵀ) v` for each head of each sequence, for `f16` and `bf16`. Scores and weights are not stored.
    pub fn attention<'a, T: NetworkElement>(
        &'a self,
        q: AttentionTensor<'a, T>,
        k: AttentionTensor<'a, T>,
        v: AttentionTensor<'a, T>,
        o: AttentionTensor<'a, T>,
    ) -> AttentionCall<'a, T> {
        AttentionCall::new(&self.loaded, [q, k, v, o])
    }
}
