//! Operations on vectors that compare, add up and move elements.

use kiln_operation::{Asum, Iamax, Swap, VectorCopy};
use kiln_runtime::GpuRef;

use super::element::Real;
use super::handle::{Blas, memory, same_length, without_terms};
use super::matrix::Matrix;
use super::vector::Vector;
use crate::called::Called;
use crate::described::Described;
use crate::error::LibraryError;
use crate::library_call::LibraryCall;
use crate::operands::Operands;
use crate::prims::check::Check;

static ASUM: Called = Called::new(Asum::NAME, "result");

impl Blas {
    /// `y = x`, for vectors with steps; [`GpuRef::copy_from`] copies buffers without.
    pub fn copy<'a, T: Real>(
        &'a self,
        x: impl Into<Vector<'a, T>>,
        y: impl Into<Vector<'a, T>>,
    ) -> LibraryCall<'a> {
        let (x, y) = (x.into(), y.into());
        let described = same_length(VectorCopy::NAME, &x, &y).and_then(|n| {
            let copy = VectorCopy { element: T::TYPE, n, x_step: x.step, y_step: y.step };
            if n == 0 {
                let operands = Operands::of(VectorCopy::NAME).with("x", x.buffer).with("y", y.buffer);
                return Described::nothing(&self.loaded, copy, &operands);
            }
            Described::new(copy, [memory(x.buffer), memory(y.buffer)])
        });
        LibraryCall::new(&self.loaded, described)
    }

    /// `x` and `y` exchange their elements.
    pub fn swap<'a, T: Real>(
        &'a self,
        x: impl Into<Vector<'a, T>>,
        y: impl Into<Vector<'a, T>>,
    ) -> LibraryCall<'a> {
        let (x, y) = (x.into(), y.into());
        let described = same_length(Swap::NAME, &x, &y).and_then(|n| {
            let swap = Swap { element: T::TYPE, n, x_step: x.step, y_step: y.step };
            if n == 0 {
                let operands = Operands::of(Swap::NAME).with("x", x.buffer).with("y", y.buffer);
                return Described::nothing(&self.loaded, swap, &operands);
            }
            Described::new(swap, [memory(x.buffer), memory(y.buffer)])
        });
        LibraryCall::new(&self.loaded, described)
    }

    /// `result = Σ |x|`, and 0 for a vector without elements; the result is a buffer of one element.
    pub fn asum<'a, T: Real>(
        &'a self,
        x: impl Into<Vector<'a, T>>,
        result: &'a GpuRef<T>,
    ) -> LibraryCall<'a> {
        let x = x.into();
        let asum = Asum { element: T::TYPE, n: x.len(), x_step: x.step };
        let described = Check(Asum::NAME).length("result", result, 1).and_then(|()| match x.len() {
            0 => {
                Operands::of(Asum::NAME).with("x", x.buffer).check(self.loaded.gpu())?;
                without_terms(&self.loaded, &ASUM, Matrix::new(result, 1, 1), None)
            }
            _ => Described::new(asum, [memory(x.buffer), memory(result)]),
        });
        LibraryCall::new(&self.loaded, described)
    }

    /// The place of the element with the largest absolute value, of equal ones the first, **counted from 1**, as BLAS has it; the result is a buffer of one
    /// element. With a NaN among the elements it has no meaning; [`arg_max`](crate::prims::Primitives::arg_max) orders those.
    pub fn iamax<'a, T: Real>(
        &'a self,
        x: impl Into<Vector<'a, T>>,
        result: &'a GpuRef<i64>,
    ) -> LibraryCall<'a> {
        let x = x.into();
        let iamax = Iamax { element: T::TYPE, n: x.len(), x_step: x.step };
        let described = match x.len() {
            0 => {
                let what = "a vector without elements has no largest";
                Err(LibraryError::argument(Iamax::NAME, what, "leave the call out"))
            }
            _ => Check(Iamax::NAME)
                .length("result", result, 1)
                .and_then(|()| Described::new(iamax, [memory(x.buffer), memory(result)])),
        };
        LibraryCall::new(&self.loaded, described)
    }
}
