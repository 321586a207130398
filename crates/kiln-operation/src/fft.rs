//! Fourier transforms.

use std::fmt;

use crate::element_type::ElementType;
use crate::error::OperationError;
use crate::extent::{Extent, check_sizes};
use crate::field::{Field, operation, words};
use crate::level1::check_element;
use crate::operand::{OperandEffect, OperationOperand};

words! {
    /// What a transform reads and writes.
    FftKind {
        /// Complex to complex, with the exponent `-2πi`.
        Forward = "forward",
        /// Complex to complex, with the exponent `+2πi`.
        Inverse = "inverse",
        /// Real to complex: the first half of the spectrum, and the element in the middle.
        RealForward = "real_forward",
        /// Complex to real, from half of a spectrum.
        RealInverse = "real_inverse",
    }
}

/// One to three extents, the slowest first: `16x1024`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct FftShape {
    extents: [u64; 3],
    rank: u8,
}

impl FftShape {
    /// A shape of one to three extents, the slowest first; none for another number.
    pub fn new(extents: &[u64]) -> Option<Self> {
        let mut all = [1; 3];
        all.get_mut(..extents.len())?.copy_from_slice(extents);
        (!extents.is_empty()).then_some(Self { extents: all, rank: extents.len() as u8 })
    }

    /// The extents, the slowest first.
    pub fn extents(&self) -> &[u64] {
        self.extents.get(..usize::from(self.rank)).unwrap_or(&self.extents)
    }

    /// The fastest extent.
    pub fn last(&self) -> u64 {
        self.extents().last().copied().unwrap_or(1)
    }

    /// Rows of the fastest extent.
    pub fn rows(&self) -> u64 {
        let (_, slower) = self.extents().split_last().unwrap_or((&1, &[]));
        slower.iter().fold(1, |rows, extent| rows.saturating_mul(*extent))
    }
}

impl fmt::Display for FftShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, extent) in self.extents().iter().enumerate() {
            write!(f, "{}{extent}", if at == 0 { "" } else { "x" })?;
        }
        Ok(())
    }
}

impl Field for FftShape {
    const WANTED: &'static str = "one to three extents, such as 1024 or 64x64";

    fn parse(text: &str) -> Option<Self> {
        let extents: Option<Vec<u64>> = text.split('x').map(u64::parse).collect();
        Self::new(&extents?)
    }
}

operation! {
    /// A Fourier transform of each array of a batch, without scaling. Arrays are dense, the last extent is the fastest, and complex numbers
    /// are pairs of real and imaginary part. In place, a row of real numbers is as long as its spectrum.
    FftOperation = "fft" {
        /// What is read and written.
        kind: FftKind,
        /// Of real and imaginary parts: `f32` or `f64`.
        element: ElementType,
        /// Real or complex elements of an array, whichever are more.
        shape: FftShape,
        /// How many arrays.
        batch: u64,
        /// Whether the result replaces the input.
        in_place: bool,
    }
}

impl FftOperation {
    /// Complex elements in a row of the spectrum.
    pub fn spectrum_row(&self) -> u64 {
        match self.kind {
            FftKind::Forward | FftKind::Inverse => self.shape.last(),
            FftKind::RealForward | FftKind::RealInverse => self.shape.last() / 2 + 1,
        }
    }

    /// Real numbers in a row of real data, with those that only make room for the spectrum.
    pub fn real_row(&self) -> u64 {
        if self.in_place { 2 * self.spectrum_row() } else { self.shape.last() }
    }

    /// Whether the input is lost: libraries use it as workspace.
    pub fn destroys_input(&self) -> bool {
        self.kind == FftKind::RealInverse && !self.in_place && self.shape.extents().len() > 1
    }

    pub(crate) fn operands(&self) -> Result<Vec<OperationOperand>, OperationError> {
        check_element(Self::NAME, self.element)?;
        check_sizes(Self::NAME, &[("batch", self.batch)])?;
        self.shape.extents().iter().try_for_each(|extent| check_sizes(Self::NAME, &[("shape", *extent)]))?;
        let mut rows = vec![self.batch];
        rows.extend(self.shape.extents().iter().rev().skip(1));
        let name = if self.in_place { "data" } else { "input" };
        let extent = |row: u64| Extent::dense((Self::NAME, name), &[&rows[..], &[row]].concat());
        // No operand is longer than this, so that the others fit where it does.
        if extent(self.shape.last().saturating_mul(2).saturating_add(2)).is_err() {
            // In the numbers that were given.
            let what = format!("has 2^59 elements or more: {} arrays of {}", self.batch, self.shape);
            return Err(OperationError::operand((Self::NAME, name), what, "use smaller sizes"));
        }
        let spectrum = extent(2 * self.spectrum_row())?;
        let real = extent(self.real_row())?;
        let aligned = |operand: OperationOperand, complex: bool| OperationOperand {
            alignment: if complex { 2 * self.element.bytes() } else { operand.alignment },
            ..operand
        };
        if self.in_place {
            let data = spectrum.operand("data", self.element, OperandEffect::ReadsAndWrites);
            return Ok(vec![aligned(data, true)]);
        }
        let (input, output) = match self.kind {
            FftKind::Forward | FftKind::Inverse => ((spectrum, true), (spectrum, true)),
            FftKind::RealForward => ((real, false), (spectrum, true)),
            FftKind::RealInverse => ((spectrum, true), (real, false)),
        };
        let effect = if self.destroys_input() { OperandEffect::ReadsAndWrites } else { OperandEffect::Reads };
        Ok(vec![
            aligned(input.0.operand("input", self.element, effect), input.1),
            aligned(output.0.operand("output", self.element, OperandEffect::Overwrites), output.1),
        ])
    }
}
