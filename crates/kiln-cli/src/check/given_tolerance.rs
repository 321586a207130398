//! `--tolerance RELATIVE` or `--tolerance RELATIVE,ABSOLUTE`: how far floats may lie from what is expected.

use kiln_libs::Tolerance;
use kiln_libs::operation::ElementType as LibraryElement;

use crate::element_type::ElementType;

/// How far floats may lie from what is expected. None given is none at all.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(crate) struct GivenTolerance {
    relative: f64,
    absolute: f64,
    /// Whether a number may be rounded to its type.
    is_given: bool,
}

const FORMS: &str = "write one or two numbers that are not negative: for each unit of the expected value, and for \
                     each element whatever it is, such as 1e-5 or 1e-5,1e-8";

impl GivenTolerance {
    /// Reads a word of the command line.
    pub(super) fn of_word(text: &str) -> Result<Self, String> {
        let number = |word: &str| {
            let number: f64 = word.trim().parse().ok()?;
            (number.is_finite() && number >= 0.0).then_some(number)
        };
        let (relative, absolute) = text.split_once(',').unwrap_or((text, "0"));
        match (number(relative), number(absolute)) {
            (Some(relative), Some(absolute)) => Ok(Self { relative, absolute, is_given: true }),
            _ => Err(FORMS.to_owned()),
        }
    }

    /// What to do about a float that is further off.
    pub(super) fn advice(self) -> &'static str {
        if self.is_given {
            "only rounded otherwise? allow more with a larger --tolerance"
        } else {
            "only rounded otherwise? say how far it may be off: --tolerance 1e-5"
        }
    }

    /// The tolerance of elements of a type, as that of a library's operation is. Integers have none.
    pub(super) fn of(self, element: ElementType) -> Tolerance {
        let rounded = match element {
            ElementType::F16 => LibraryElement::F16,
            ElementType::Bf16 => LibraryElement::Bf16,
            ElementType::F32 | ElementType::Complex64 => LibraryElement::F32,
            ElementType::F64 | ElementType::Complex128 => LibraryElement::F64,
            _ => return Tolerance { relative: 0.0, rounding: 0.0, absolute: 0.0 },
        };
        let rounding = if self.is_given { rounded.unit_roundoff() } else { 0.0 };
        Tolerance { relative: self.relative, rounding, absolute: self.absolute }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_or_two_numbers_are_read() {
        let given = GivenTolerance::of_word("1e-5, 0.25").unwrap();
        // The third part is the rounding of the result itself.
        let wanted = 1e-5 * 8.0 + 0.25 + 8.0 * 2.0_f64.powi(-24);
        assert!((given.of(ElementType::F32).bound(8.0, 8.0) - wanted).abs() < 1e-12);
        assert_eq!(given.of(ElementType::I32).bound(8.0, 8.0), 0.0);
        assert_eq!(GivenTolerance::default().of(ElementType::F64).bound(8.0, 8.0), 0.0);
        for text in ["", "x", "-1", "1,-1", "nan", "inf", "1,2,3", ","] {
            assert!(GivenTolerance::of_word(text).is_err(), "{text}");
        }
    }
}
