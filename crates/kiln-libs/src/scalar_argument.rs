//! Scalars as a library takes them: in the type that it scales with, so that all devices multiply by the same number.

use half::f16;
use kiln_operation::ElementType;

use crate::Result;
use crate::error::LibraryError;

/// A factor, rounded to the type that a library scales floating point numbers with.
pub(crate) fn rounded(scale: ElementType, value: f64) -> f64 {
    match scale {
        ElementType::F64 => value,
        ElementType::F16 => f16::from_f64(value).to_f64(),
        _ => f64::from(value as f32),
    }
}

/// The factor of what the result holds already. Where it is 0, there is none: what the result holds is not read, and may be NaN.
pub(crate) fn accumulated(scale: ElementType, beta: Option<f64>) -> Option<f64> {
    beta.map(|beta| rounded(scale, beta)).filter(|beta| *beta != 0.0)
}

/// As [`rounded`], but refuses a factor of integers that is no integer.
pub(crate) fn checked(operation: &'static str, name: &str, scale: ElementType, value: f64) -> Result<f64> {
    if scale != ElementType::I32 {
        return Ok(rounded(scale, value));
    }
    if value == f64::from(value as i32) {
        return Ok(value);
    }
    let what = format!("`{name}` is {value:?}, and the products are integers of 32 bits");
    Err(LibraryError::argument(operation, what, "use an integer of 32 bits, or matrices of floats"))
}
