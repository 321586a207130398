//! What a call of this crate's own kernels computes, for [`Tolerance`](crate::Tolerance).

use kiln_operation::ElementType;

use crate::tolerance::{BoundedError, Tolerance};

/// What a call of softmax, normalisation or pooling computes. It has no text, because no library computes it: the kernels are this crate's.
///
/// ```
/// use kiln::DeviceRuntime;
/// use kiln_libs::Tolerance;
/// use kiln_libs::dnn::Dnn;
///
/// let gpu = DeviceRuntime::simulated(1)?;
/// let (x, y) = (gpu.upload(&[0.0_f32, 0.0, 5.0, 5.0])?, gpu.allocate::<f32>(4)?);
/// let dnn = Dnn::new(&gpu);
/// let tolerance = Tolerance::of(&dnn.softmax(&x, 2, &y).operation()?);
/// // Of an element that is 0.5 with a distance of 0 from the greatest.
/// assert!(tolerance.bound(0.5, 0.5) < 2e-6);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct KernelOperation {
    pub(crate) name: &'static str,
    pub(crate) element: ElementType,
    pub(crate) error: KernelError,
}

/// What a kernel loses.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum KernelError {
    /// Elements are chosen, and are what they were.
    None,
    /// A sum of so many terms in `f32`, and the steps before and behind it.
    Sum(u64),
}

/// Roundings beside those of a sum: differences, powers, roots, quotients and factors. Each is a few units in the last place of `f32`.
const STEPS: u64 = 32;

impl KernelOperation {
    pub(crate) fn sum(name: &'static str, element: ElementType, terms: u64) -> Self {
        Self { name, element, error: KernelError::Sum(terms) }
    }

    pub(crate) fn choice(name: &'static str, element: ElementType) -> Self {
        Self { name, element, error: KernelError::None }
    }

    /// Its name, such as `dnn.softmax`.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The type of its elements. Sums are made in `f32`.
    pub fn element(&self) -> ElementType {
        self.element
    }
}

impl BoundedError for KernelOperation {
    fn tolerance(&self) -> Tolerance {
        match self.error {
            KernelError::None => Tolerance { relative: 0.0, rounding: 0.0, absolute: 0.0 },
            KernelError::Sum(terms) => Tolerance::of_sum(terms.saturating_add(STEPS), self.element),
        }
    }
}
