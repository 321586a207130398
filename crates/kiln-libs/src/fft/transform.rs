//! Builders of Fourier transforms.

use kiln_operation::{FftKind, FftOperation, FftShape};
use kiln_runtime::{DeviceRuntime, Element, GpuRef};
use smallvec::SmallVec;

use super::element::{Complex, RealPart, parts};
use crate::Result;
use crate::blas::{Matrix, without_terms};
use crate::call_arguments::Argument;
use crate::call_state::check_ready;
use crate::called::Called;
use crate::described::Described;
use crate::error::LibraryError;
use crate::library_call::LibraryCall;
use crate::loaded_operations::LoadedOperations;
use crate::operands::Operands;
use crate::scalar_argument::checked;

/// No spectrum has so many numbers.
const ELEMENT_LIMIT: u64 = 1 << 59;

/// Fourier transforms on one device. It holds the plans that were used, and nothing else.
///
/// ```
/// use kiln::DeviceRuntime;
/// use kiln_libs::fft::{Fft, Scale};
/// use num_complex::Complex32;
///
/// let gpu = DeviceRuntime::simulated(1)?;
/// let fft = Fft::new(&gpu);
/// let signal = gpu.upload(&[1.0_f32, 0.0, -1.0, 0.0])?;
/// let spectrum = gpu.allocate::<Complex32>(3)?;
/// fft.transform(&[4]).real_forward(&signal, &spectrum).submit()?;
/// assert_eq!(spectrum.download()?[1], Complex32::new(2.0, 0.0));
/// fft.transform(&[4]).scale(Scale::ByLength).real_inverse(&spectrum, &signal).submit()?;
/// assert_eq!(signal.download()?, [1.0, 0.0, -1.0, 0.0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Fft {
    loaded: LoadedOperations,
}

/// What a result is multiplied with.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub enum Scale {
    /// Nothing.
    #[default]
    None,
    /// One over the number of elements of an array, which an inverse transform needs to give the input again.
    ByLength,
    /// One over its square root: forward and inverse transform then keep lengths of vectors.
    Unitary,
    /// A number.
    Factor(f64),
}

impl Fft {
    /// Transforms on a device. Nothing is loaded yet.
    pub fn new(gpu: &DeviceRuntime) -> Self {
        Self { loaded: LoadedOperations::new(gpu) }
    }

    /// Begins a transform of arrays of one to three extents, the slowest first.
    pub fn transform(&self, extents: &[usize]) -> FftCall<'_> {
        // One more than a shape has, so that too many are refused.
        let extents: SmallVec<[u64; 4]> = extents.iter().map(|extent| *extent as u64).collect();
        FftCall { loaded: &self.loaded, shape: FftShape::new(&extents), batch: 1, scale: Scale::None }
    }
}

/// The method of a kind of transform.
fn called(kind: FftKind, in_place: bool) -> &'static Called {
    static FORWARD: Called = Called::new("fft.forward", "output");
    static INVERSE: Called = Called::new("fft.inverse", "output");
    static REAL_FORWARD: Called = Called::new("fft.real_forward", "output");
    static REAL_INVERSE: Called = Called::new("fft.real_inverse", "output");
    static FORWARD_IN_PLACE: Called = Called::new("fft.forward_in_place", "data");
    static INVERSE_IN_PLACE: Called = Called::new("fft.inverse_in_place", "data");
    static REAL_FORWARD_IN_PLACE: Called = Called::new("fft.real_forward_in_place", "data");
    static REAL_INVERSE_IN_PLACE: Called = Called::new("fft.real_inverse_in_place", "data");
    match (kind, in_place) {
        (FftKind::Forward, false) => &FORWARD,
        (FftKind::Inverse, false) => &INVERSE,
        (FftKind::RealForward, false) => &REAL_FORWARD,
        (FftKind::RealInverse, false) => &REAL_INVERSE,
        (FftKind::Forward, true) => &FORWARD_IN_PLACE,
        (FftKind::Inverse, true) => &INVERSE_IN_PLACE,
        (FftKind::RealForward, true) => &REAL_FORWARD_IN_PLACE,
        (FftKind::RealInverse, true) => &REAL_INVERSE_IN_PLACE,
    }
}

/// A transform that is being described. Of no arrays, and of arrays without elements, nothing is transformed; rows of no real numbers have a spectrum of one, which is zero.
#[derive(Clone, Copy, Debug)]
#[must_use = "nothing is computed until the kind of transform is said, and `submit` or `record`"]
pub struct FftCall<'a> {
    loaded: &'a LoadedOperations,
    /// None if there are not one to three extents.
    shape: Option<FftShape>,
    batch: u64,
    scale: Scale,
}

impl<'a> FftCall<'a> {
    /// So many arrays, one behind the other. Of none nothing is transformed.
    pub fn batch(self, arrays: usize) -> Self {
        Self { batch: arrays as u64, ..self }
    }

    /// Multiplies the result. It costs another launch.
    pub fn scale(self, scale: Scale) -> Self {
        Self { scale, ..self }
    }

    /// With the exponent `-2πi`, from one buffer to another.
    pub fn forward<C: Complex>(self, input: &'a GpuRef<C>, output: &'a GpuRef<C>) -> LibraryCall<'a> {
        self.between::<C::Part>(FftKind::Forward, input, output)
    }

    /// With the exponent `+2πi`, from one buffer to another.
    pub fn inverse<C: Complex>(self, input: &'a GpuRef<C>, output: &'a GpuRef<C>) -> LibraryCall<'a> {
        self.between::<C::Part>(FftKind::Inverse, input, output)
    }

    /// With the exponent `-2πi`; the result replaces the input.
    pub fn forward_in_place<C: Complex>(self, data: &'a GpuRef<C>) -> LibraryCall<'a> {
        self.in_place::<C::Part>(FftKind::Forward, data)
    }

    /// With the exponent `+2πi`; the result replaces the input.
    pub fn inverse_in_place<C: Complex>(self, data: &'a GpuRef<C>) -> LibraryCall<'a> {
        self.in_place::<C::Part>(FftKind::Inverse, data)
    }

    /// From real numbers to the first half of their spectrum.
    pub fn real_forward<C: Complex>(
        self,
        input: &'a GpuRef<C::Part>,
        output: &'a GpuRef<C>,
    ) -> LibraryCall<'a> {
        self.between::<C::Part>(FftKind::RealForward, input, output)
    }

    /// From the first half of a spectrum to real numbers. With two or three extents the input is destroyed.
    pub fn real_inverse<C: Complex>(
        self,
        input: &'a GpuRef<C>,
        output: &'a GpuRef<C::Part>,
    ) -> LibraryCall<'a> {
        self.between::<C::Part>(FftKind::RealInverse, input, output)
    }

    /// From real numbers to the first half of their spectrum, in the same buffer: each row of real numbers has room for the row of its spectrum.
    pub fn real_forward_in_place<C: Complex>(self, data: &'a GpuRef<C>) -> LibraryCall<'a> {
        self.in_place::<C::Part>(FftKind::RealForward, data)
    }

    /// From the first half of a spectrum to real numbers, in the same buffer; see
    /// [`real_forward_in_place`](Self::real_forward_in_place).
    pub fn real_inverse_in_place<C: Complex>(self, data: &'a GpuRef<C>) -> LibraryCall<'a> {
        self.in_place::<C::Part>(FftKind::RealInverse, data)
    }

    fn between<T: RealPart>(
        self,
        kind: FftKind,
        input: &'a GpuRef<impl Element>,
        output: &'a GpuRef<impl Element>,
    ) -> LibraryCall<'a> {
        let called = called(kind, false);
        let described = self.operation::<T>(kind, false).and_then(|operation| {
            if self.is_empty() {
                let operands = Operands::of(called.call).with("input", input).with("output", output);
                return self.without_terms::<T>(operation, &operands, output, called);
            }
            let buffers = [Argument::borrowed(input), Argument::borrowed(output)];
            let described = Described::new(operation, buffers.map(Ok))?.called(called);
            self.scaled::<T>(operation, described, output)
        });
        LibraryCall::new(self.loaded, described)
    }

    fn in_place<T: RealPart>(self, kind: FftKind, data: &'a GpuRef<impl Element>) -> LibraryCall<'a> {
        let called = called(kind, true);
        let described = self.operation::<T>(kind, true).and_then(|operation| {
            if self.is_empty() {
                let operands = Operands::of(called.call).with("data", data);
                return self.without_terms::<T>(operation, &operands, data, called);
            }
            let described = Described::new(operation, [Ok(Argument::borrowed(data))])?.called(called);
            self.scaled::<T>(operation, described, data)
        });
        LibraryCall::new(self.loaded, described)
    }

    /// Whether there are no arrays, or arrays without elements.
    fn is_empty(&self) -> bool {
        self.batch == 0 || self.shape.is_some_and(|shape| shape.extents().contains(&0))
    }

    /// A transform of nothing. Rows of no real numbers have a spectrum of one, which is zero.
    fn without_terms<T: RealPart>(
        &self,
        operation: FftOperation,
        operands: &Operands<'_>,
        result: &GpuRef<impl Element>,
        called: &'static Called,
    ) -> Result<Described<'a>> {
        self.factor(operation)?;
        let mut rows = operation.shape.extents().iter().rev().skip(1).chain([&operation.batch]);
        let count = rows
            .try_fold(2_u64, |count, rows| count.checked_mul(*rows).filter(|count| *count < ELEMENT_LIMIT));
        let count = match operation.kind {
            FftKind::RealForward => count.and_then(|count| usize::try_from(count).ok()),
            FftKind::Forward | FftKind::Inverse | FftKind::RealInverse => Some(0),
        };
        match count {
            Some(0) => Ok(Described::nothing(self.loaded, operation, operands)?.called(called)),
            Some(count) => {
                check_ready(self.loaded.gpu(), called.call)?;
                operands.check(self.loaded.gpu())?;
                let numbers = parts::<_, T>(result, count as u64 * T::TYPE.bytes())?;
                Ok(without_terms(self.loaded, called, Matrix::new(&numbers, 1, count), None)?)
            }
            None => {
                let FftOperation { batch, shape, .. } = operation;
                let what =
                    format!("`{}` has 2^59 elements or more: {batch} arrays of {shape}", called.result);
                Err(LibraryError::argument(called.call, what, "use smaller sizes"))
            }
        }
    }

    fn operation<T: RealPart>(&self, kind: FftKind, in_place: bool) -> Result<FftOperation> {
        let shape = self.shape.ok_or_else(|| {
            let what = "an array without extents, or with more than three";
            let hint = "give one to three extents, the slowest first";
            LibraryError::argument(called(kind, in_place).call, what, hint)
        })?;
        Ok(FftOperation { kind, element: T::TYPE, shape, batch: self.batch, in_place })
    }

    /// What the result is multiplied with.
    fn factor(&self, operation: FftOperation) -> Result<Option<f64>> {
        let extents = operation.shape.extents().iter().map(|extent| (*extent).max(1) as f64);
        let elements: f64 = extents.product();
        let factor = match self.scale {
            Scale::None => return Ok(None),
            Scale::ByLength => 1.0 / elements,
            Scale::Unitary => 1.0 / elements.sqrt(),
            Scale::Factor(factor) => factor,
        };
        let call = called(operation.kind, operation.in_place).call;
        checked(call, "scale", operation.element, factor).map(Some)
    }

    fn scaled<T: RealPart>(
        &self,
        operation: FftOperation,
        described: Described<'a>,
        result: &GpuRef<impl Element>,
    ) -> Result<Described<'a>> {
        let Some(factor) = self.factor(operation)? else { return Ok(described) };
        let operands = described.checked_operands()?;
        let bytes = operands.last().map_or(0, |operand| operand.bytes);
        let scaling = T::scaling(parts(result, bytes)?, factor).0;
        Ok(described.scaled(Some(scaling)))
    }
}
