//! Element types of Fourier transforms.

use kiln_runtime::{Element, GpuRef};

use crate::Result;
use crate::blas::MatrixElement;
use crate::scaling::Scaling;

mod sealed {
    pub trait Sealed {}
    impl Sealed for f32 {}
    impl Sealed for f64 {}
}

/// What real and imaginary parts are: `f32` or `f64`.
pub trait RealPart: MatrixElement + sealed::Sealed {
    #[doc(hidden)]
    fn scaling(values: GpuRef<Self>, factor: f64) -> ScalingOf;
}

/// A factor for a result.
#[doc(hidden)]
#[derive(Debug)]
pub struct ScalingOf(pub(super) Scaling);

impl RealPart for f32 {
    fn scaling(values: GpuRef<Self>, factor: f64) -> ScalingOf {
        ScalingOf(Scaling::F32(values, factor as Self))
    }
}

impl RealPart for f64 {
    fn scaling(values: GpuRef<Self>, factor: f64) -> ScalingOf {
        ScalingOf(Scaling::F64(values, factor))
    }
}

/// A complex number: real part, then imaginary part.
pub trait Complex: Element {
    /// The type of its parts.
    type Part: RealPart;
}

impl<T: RealPart> Complex for [T; 2] {
    type Part = T;
}

impl Complex for num_complex::Complex<f32> {
    type Part = f32;
}

impl Complex for num_complex::Complex<f64> {
    type Part = f64;
}

/// A buffer as the numbers that it consists of.
pub(super) fn parts<C: Element, T: RealPart>(buffer: &GpuRef<C>, bytes: u64) -> Result<GpuRef<T>> {
    let numbers = buffer.cast::<T>()?;
    let len = (bytes / size_of::<T>() as u64) as usize;
    Ok(numbers.view(..len.min(numbers.len()))?)
}
