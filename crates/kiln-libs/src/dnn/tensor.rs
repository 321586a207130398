//! A tensor of images or filters in a buffer.

use half::{bf16, f16};
use kiln_operation::TensorLayout;
use kiln_runtime::GpuRef;

use crate::blas::MatrixElement;

/// What networks are computed with: `f32`, `f16` and `bf16`.
pub trait NetworkElement: MatrixElement {}

impl NetworkElement for f32 {}
impl NetworkElement for f16 {}
impl NetworkElement for bf16 {}

/// A tensor of four dimensions at the start of a buffer, without gaps: images, channels, height, width. Filters are
/// `[out, channels / groups, height, width]`.
///
/// A convolution takes tensors that begin at multiples of 16 bytes, on every device; a buffer does, and a view where it is cut so. Pools take any start.
///
/// The last dimension lies side by side (NCHW) unless [`channels_last`](Self::channels_last) is said.
#[derive(Debug)]
pub struct Tensor<'a, T: NetworkElement> {
    pub(crate) buffer: &'a GpuRef<T>,
    pub(crate) dimensions: [u64; 4],
    pub(crate) layout: TensorLayout,
}

impl<T: NetworkElement> Clone for Tensor<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: NetworkElement> Copy for Tensor<'_, T> {}

impl<'a, T: NetworkElement> Tensor<'a, T> {
    /// A tensor of images, channels, height and width, in this order.
    pub fn new(buffer: &'a GpuRef<T>, dimensions: [usize; 4]) -> Self {
        Self { buffer, dimensions: dimensions.map(|size| size as u64), layout: TensorLayout::Nchw }
    }

    /// The same dimensions, where the channels of a pixel lie side by side (NHWC). Tensor cores compute with this layout.
    #[must_use]
    pub fn channels_last(self) -> Self {
        Self { layout: TensorLayout::Nhwc, ..self }
    }

    /// Its shape in words.
    pub(crate) fn shape_text(&self) -> String {
        dimensions_text(self.dimensions)
    }
}

/// Dimensions in words.
pub(crate) fn dimensions_text([n, c, h, w]: [u64; 4]) -> String {
    format!("{n} x {c} x {h} x {w}")
}
