//! Softmax, normalisation and pooling: kernels of this crate, the same on every device.

use kiln_runtime::GpuRef;

use super::handle::Dnn;
use super::norm::{EPSILON, Norm};
use super::norm_backward::NormBackward;
use super::pool::{Pool, PoolKind, PoolPass};
use super::softmax::{Softmax, SoftmaxBackward};
use super::tensor::{NetworkElement, Tensor};
use crate::prims::PrimitiveCall;

impl Dnn {
    /// `y = exp(x) / Σ exp(x)` for each row of `columns` elements. `y` may be `x`. [`log`](PrimitiveCall::log) takes the logarithm.
    ///
    /// The greatest number of the row is subtracted first, so large numbers do not overflow. A row with NaN or infinity is NaN, and so is one of negative
    /// infinities alone.
    ///
    /// ```
    /// use kiln::DeviceRuntime;
    /// use kiln_libs::dnn::Dnn;
    ///
    /// let gpu = DeviceRuntime::simulated(1)?;
    /// let (x, y) = (gpu.upload(&[0.0_f32, 0.0, 5.0, 5.0])?, gpu.allocate::<f32>(4)?);
    /// Dnn::new(&gpu).softmax(&x, 2, &y).submit()?;
    /// assert_eq!(y.download()?, [0.5; 4]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn softmax<T: NetworkElement>(
        &self,
        x: &GpuRef<T>,
        columns: usize,
        y: &GpuRef<T>,
    ) -> PrimitiveCall<'_, Softmax<T>> {
        let (x, y) = (x.clone(), y.clone());
        PrimitiveCall::new(&self.kernels, Softmax { x, columns, y, is_log: false })
    }

    /// The gradient `dx = y (dy - Σ y dy)` of a softmax, of its result `y` and the gradient `dy` of that.
    pub fn softmax_backward<T: NetworkElement>(
        &self,
        y: &GpuRef<T>,
        dy: &GpuRef<T>,
        columns: usize,
        dx: &GpuRef<T>,
    ) -> PrimitiveCall<'_, SoftmaxBackward<T>> {
        let (y, dy, dx) = (y.clone(), dy.clone(), dx.clone());
        PrimitiveCall::new(&self.kernels, SoftmaxBackward { y, dy, columns, dx, is_log: false })
    }

    /// `y = (x - mean) / √(variance + epsilon)` for each row of `columns` elements; then each column can be multiplied with a weight, and a bias added.
    ///
    /// `x` and `y` share no memory.
    ///
    /// ```
    /// use kiln::DeviceRuntime;
    /// use kiln_libs::dnn::Dnn;
    ///
    /// let gpu = DeviceRuntime::simulated(1)?;
    /// let (x, y) = (gpu.upload(&[1.0_f32, 3.0])?, gpu.allocate::<f32>(2)?);
    /// let bias = gpu.upload(&[10.0_f32, 20.0])?;
    /// Dnn::new(&gpu).layer_norm(&x, 2, &y).bias(&bias).epsilon(0.0).submit()?;
    /// assert_eq!(y.download()?, [9.0, 21.0]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn layer_norm<T: NetworkElement>(
        &self,
        x: &GpuRef<T>,
        columns: usize,
        y: &GpuRef<T>,
    ) -> PrimitiveCall<'_, Norm<T>> {
        PrimitiveCall::new(&self.kernels, norm(x, columns, y, true))
    }

    /// `y = x / √(mean of squares + epsilon)` for each row of `columns` elements; then each column can be multiplied with a weight.
    /// `x` and `y` share no memory.
    pub fn rms_norm<T: NetworkElement>(
        &self,
        x: &GpuRef<T>,
        columns: usize,
        y: &GpuRef<T>,
    ) -> PrimitiveCall<'_, Norm<T>> {
        PrimitiveCall::new(&self.kernels, norm(x, columns, y, false))
    }

    /// The gradient `dx` of a layer norm, of its input, the gradient `dy` of its result, and the means and scales of its rows. Give the weight if there was
    /// one; the gradients of weight and bias are written where they are asked for.
    pub fn layer_norm_backward<T: NetworkElement>(
        &self,
        x: &GpuRef<T>,
        dy: &GpuRef<T>,
        (means, scales): (&GpuRef<f32>, &GpuRef<f32>),
        columns: usize,
        dx: &GpuRef<T>,
    ) -> PrimitiveCall<'_, NormBackward<T>> {
        PrimitiveCall::new(&self.kernels, norm_backward((x, dy, dx), Some(means), scales, columns))
    }

    /// The gradient `dx` of an RMS norm, of its input, the gradient `dy` of its result, and the scales of its rows.
    pub fn rms_norm_backward<T: NetworkElement>(
        &self,
        x: &GpuRef<T>,
        dy: &GpuRef<T>,
        scales: &GpuRef<f32>,
        columns: usize,
        dx: &GpuRef<T>,
    ) -> PrimitiveCall<'_, NormBackward<T>> {
        PrimitiveCall::new(&self.kernels, norm_backward((x, dy, dx), None, scales, columns))
    }

    /// The greatest number of each window of rows and columns. A NaN counts as the greatest.
    pub fn max_pool<T: NetworkElement>(
        &self,
        x: Tensor<'_, T>,
        window: [usize; 2],
        y: Tensor<'_, T>,
    ) -> PrimitiveCall<'_, Pool<T>> {
        let pass = PoolPass::Forward { x: x.buffer.clone(), y: y.buffer.clone() };
        PrimitiveCall::new(&self.kernels, Pool::new(PoolKind::Max, pass, &x, &y, window))
    }

    /// The gradient `dx` of a [`max_pool`](Self::max_pool), of its images and the gradient `dy` of its result: it goes to the greatest number of each window, and of equal
    /// ones to the first.
    pub fn max_pool_backward<T: NetworkElement>(
        &self,
        x: Tensor<'_, T>,
        dy: Tensor<'_, T>,
        window: [usize; 2],
        dx: &GpuRef<T>,
    ) -> PrimitiveCall<'_, Pool<T>> {
        let images = Some(x.buffer.clone());
        let pass = PoolPass::Backward { x: images, dy: dy.buffer.clone(), dx: dx.clone() };
        PrimitiveCall::new(&self.kernels, Pool::new(PoolKind::Max, pass, &x, &dy, window))
    }

    /// The average of each window of rows and columns.
    pub fn average_pool<T: NetworkElement>(
        &self,
        x: Tensor<'_, T>,
        window: [usize; 2],
        y: Tensor<'_, T>,
    ) -> PrimitiveCall<'_, Pool<T>> {
        let pass = PoolPass::Forward { x: x.buffer.clone(), y: y.buffer.clone() };
        PrimitiveCall::new(&self.kernels, Pool::new(PoolKind::Average, pass, &x, &y, window))
    }

    /// The gradient `dx` of an [`average_pool`](Self::average_pool), of the gradient `dy` of its result.
    pub fn average_pool_backward<T: NetworkElement>(
        &self,
        dy: Tensor<'_, T>,
        window: [usize; 2],
        dx: Tensor<'_, T>,
    ) -> PrimitiveCall<'_, Pool<T>> {
        let pass = PoolPass::Backward { x: None, dy: dy.buffer.clone(), dx: dx.buffer.clone() };
        PrimitiveCall::new(&self.kernels, Pool::new(PoolKind::Average, pass, &dx, &dy, window))
    }
}

fn norm<T: NetworkElement>(x: &GpuRef<T>, columns: usize, y: &GpuRef<T>, is_centred: bool) -> Norm<T> {
    let (x, y) = (x.clone(), y.clone());
    Norm { x, columns, y, is_centred, weight: None, bias: None, epsilon: EPSILON, means: None, scales: None }
}

fn norm_backward<T: NetworkElement>(
    (x, dy, dx): (&GpuRef<T>, &GpuRef<T>, &GpuRef<T>),
    means: Option<&GpuRef<f32>>,
    scales: &GpuRef<f32>,
    columns: usize,
) -> NormBackward<T> {
    NormBackward {
        x: x.clone(),
        dy: dy.clone(),
        columns,
        means: means.cloned(),
        scales: scales.clone(),
        dx: dx.clone(),
        weight: None,
        weight_gradient: None,
        bias_gradient: None,
    }
}
