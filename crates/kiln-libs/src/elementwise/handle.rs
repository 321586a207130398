//! `Elementwise`: the entry point of all operations on elements.

use kiln_runtime::{DeviceRuntime, GpuRef};

use super::affine::Affine;
use super::apply::{Apply, ApplyBackward};
use super::cast::Cast;
use super::combine::{Combination, Combine};
use super::element_function::ElementFunction;
use super::element_number::{ElementFloat, ElementNumber};
use crate::prims::{PrimitiveCall, Primitives};

/// Operations on elements, on one device. It holds kernels, which are made when they are first used, and nothing else.
#[derive(Debug)]
pub struct Elementwise {
    kernels: Primitives,
}

impl Elementwise {
    /// Operations on a device. Nothing is loaded yet.
    pub fn new(gpu: &DeviceRuntime) -> Self {
        Self { kernels: Primitives::of(gpu, &[]) }
    }

    /// `y = f(x)`. `y` may be `x`.
    pub fn apply<T: ElementFloat>(
        &self,
        function: ElementFunction,
        x: &GpuRef<T>,
        y: &GpuRef<T>,
    ) -> PrimitiveCall<'_, Apply<T>> {
        PrimitiveCall::new(&self.kernels, Apply { function, x: x.clone(), y: y.clone() })
    }

    /// The gradient `dx = dy f'(x)`, of the input `x` and the gradient `dy` of the result. `dx` may be either.
    pub fn apply_backward<T: ElementFloat>(
        &self,
        function: ElementFunction,
        x: &GpuRef<T>,
        dy: &GpuRef<T>,
        dx: &GpuRef<T>,
    ) -> PrimitiveCall<'_, ApplyBackward<T>> {
        let (x, dy, dx) = (x.clone(), dy.clone(), dx.clone());
        PrimitiveCall::new(&self.kernels, ApplyBackward { function, x, dy, dx })
    }

    /// `c = a + b`, or another [`Combination`]. `c` may be either input, or both.
    pub fn combine<T: ElementNumber>(
        &self,
        combination: Combination,
        a: &GpuRef<T>,
        b: &GpuRef<T>,
        c: &GpuRef<T>,
    ) -> PrimitiveCall<'_, Combine<T>> {
        let (a, b, c) = (a.clone(), b.clone(), c.clone());
        PrimitiveCall::new(&self.kernels, Combine { combination, a, b, c })
    }

    /// `y = scale x + shift`, rounded after the product and after the sum. Both numbers are rounded to the type in which is computed: `f64` for `f64`, otherwise `f32`. `y` may be `x`.
    pub fn affine<T: ElementFloat>(
        &self,
        scale: f64,
        x: &GpuRef<T>,
        shift: f64,
        y: &GpuRef<T>,
    ) -> PrimitiveCall<'_, Affine<T>> {
        PrimitiveCall::new(&self.kernels, Affine { scale, x: x.clone(), shift, y: y.clone() })
    }

    /// The elements of `x` in the type of `y`. Floats are rounded once, to the nearest, ties to even. Floats that become integers are cut toward zero; what is beyond the
    /// type becomes its least or greatest number, and NaN becomes 0. Integers that become shorter keep their lowest bits. The buffers share no memory.
    pub fn cast<A: ElementNumber, B: ElementNumber>(
        &self,
        x: &GpuRef<A>,
        y: &GpuRef<B>,
    ) -> PrimitiveCall<'_, Cast<A, B>> {
        PrimitiveCall::new(&self.kernels, Cast { x: x.clone(), y: y.clone() })
    }
}
