//! A vector in a buffer.

use kiln_runtime::GpuRef;

use super::element::Real;
use crate::Result;
use crate::error::LibraryError;

/// A vector in a buffer: all of its elements, or every so many.
#[derive(Debug)]
pub struct Vector<'a, T: Real> {
    pub(super) buffer: &'a GpuRef<T>,
    pub(super) step: u64,
}

impl<T: Real> Clone for Vector<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: Real> Copy for Vector<'_, T> {}

impl<'a, T: Real> Vector<'a, T> {
    /// All elements of a buffer.
    pub fn new(buffer: &'a GpuRef<T>) -> Self {
        Self { buffer, step: 1 }
    }

    /// The first element of each group of so many.
    #[must_use]
    pub fn step(self, step: usize) -> Self {
        Self { step: step as u64, ..self }
    }

    /// Refuses a step of 0.
    pub(super) fn check_step(&self, operation: &'static str, name: &str) -> Result<()> {
        if self.step > 0 {
            return Ok(());
        }
        let what = format!("`{name}` has a step of 0");
        Err(LibraryError::argument(operation, what, "use a step of 1 or more"))
    }

    /// How many elements it has, in words.
    pub(super) fn len_text(&self) -> String {
        match self.step {
            1 => format!("{} elements", self.len()),
            step => format!("{} elements at a step of {step}", self.len()),
        }
    }

    /// How many elements it has.
    pub(super) fn len(&self) -> u64 {
        (self.buffer.len() as u64).div_ceil(self.step.max(1))
    }
}

impl<'a, T: Real> From<&'a GpuRef<T>> for Vector<'a, T> {
    fn from(buffer: &'a GpuRef<T>) -> Self {
        Self::new(buffer)
    }
}
