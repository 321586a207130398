//! Scalars as a library takes them: in the type that it scales with, so that all devices multiply by the same number.
//!
//! All calls have one rule for the numbers that they are given by value: a number that is multiplied with or added is finite in the type that is computed in. NaN,
//! infinities and what rounds to an infinity are refused, so that a mistake is told where it is made and not found in the results.

use half::f16;
use kiln_operation::ElementType;

use crate::Result;
use crate::call_arguments::Argument;
use crate::error::LibraryError;

/// A factor, rounded to the type that a library scales with. One that is no finite number there is refused, and for integers one that is no integer.
#[inline]
pub(crate) fn checked(call: &'static str, name: &str, scale: ElementType, value: f64) -> Result<f64> {
    let rounded = match scale {
        ElementType::F64 => value,
        ElementType::F16 => f16::from_f64(value).to_f64(),
        ElementType::I32 => f64::from(value as i32),
        _ => f64::from(value as f32),
    };
    let is_usable = if scale == ElementType::I32 { rounded == value } else { rounded.is_finite() };
    if is_usable { Ok(rounded) } else { Err(refusal(call, name, scale, value)) }
}

#[cold]
fn refusal(call: &'static str, name: &str, scale: ElementType, value: f64) -> LibraryError {
    if scale == ElementType::I32 {
        let what = format!("`{name}` is {value:?}, and the products are integers of 32 bits");
        return LibraryError::argument(call, what, "use an integer of 32 bits, or matrices of floats");
    }
    let what = match value.is_finite() {
        true => format!("`{name}` is {value:?}, which is beyond the greatest number of {scale}"),
        false => format!("`{name}` is {value:?}"),
    };
    LibraryError::argument(call, what, "use a finite number")
}

/// As [`checked`], as an argument.
pub(crate) fn scalar(
    call: &'static str,
    name: &str,
    scale: ElementType,
    value: f64,
) -> Result<Argument<'static>> {
    checked(call, name, scale, value).map(Argument::Scalar)
}

/// The factor of what the result holds already. Where it is 0, there is none: what the result holds is not read, and may be NaN.
pub(crate) fn accumulated(call: &'static str, scale: ElementType, beta: Option<f64>) -> Result<Option<f64>> {
    let Some(beta) = beta else { return Ok(None) };
    Ok(Some(checked(call, "beta", scale, beta)?).filter(|beta| *beta != 0.0))
}
