//! Literals in the text, with and without a type.

use crate::literal::Literal;
use crate::scalar_type::Type;

/// A number that has no type yet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Untyped {
    /// Its magnitude, if it is a whole number that fits.
    whole: Option<u64>,
    value: f64,
    negative: bool,
}

impl Untyped {
    /// The number as a type; `None` if it does not fit.
    pub(super) fn to(self, ty: Type) -> Option<Literal> {
        if ty.is_float() {
            return Some(Literal::float(ty, if self.negative { -self.value } else { self.value }));
        }
        let whole = i128::from(self.whole?);
        Literal::integer(ty, if self.negative { -whole } else { whole })
    }

    /// The number as it was written, for a count.
    pub(super) fn count(self) -> Option<u64> {
        self.whole.filter(|_| !self.negative)
    }

    pub(super) fn negated(self) -> Self {
        Self { negative: !self.negative, ..self }
    }
}

/// The number and the type a token has.
pub(super) fn read(text: &str) -> Result<(Untyped, Option<Type>), String> {
    let (digits, ty) = split_type(text)?;
    let number = match digits.strip_prefix("0x") {
        Some(hex) => {
            let whole = u64::from_str_radix(hex, 16).map_err(|_| format!("`{text}` is no number"))?;
            Untyped { whole: Some(whole), value: whole as f64, negative: false }
        }
        None => {
            let value: f64 = digits.parse().map_err(|_| format!("`{text}` is no number"))?;
            Untyped { whole: digits.parse().ok(), value, negative: false }
        }
    };
    Ok((number, ty))
}

/// The float a token like `f32#7fc00000` means.
pub(super) fn read_bits(text: &str) -> Result<Literal, String> {
    let (word, hex) = text.split_once('#').unwrap_or((text, ""));
    let ty = Type::from_word(word).filter(|ty| ty.is_float());
    let bits = u64::from_str_radix(hex, 16).ok();
    match (ty, bits) {
        (Some(ty), Some(bits)) if bits & !ty.mask() == 0 => Ok(Literal::new(ty, bits)),
        _ => Err(format!("`{text}` is no float; write its type and its bits, as in f32#7fc00000")),
    }
}

/// Cuts the type off the end.
fn split_type(text: &str) -> Result<(&str, Option<Type>), String> {
    if text.starts_with("0x") {
        // Hexadecimal digits end where a type of an integer begins.
        return match text.find(['u', 'i']) {
            Some(at) => typed(text, at),
            None => Ok((text, None)),
        };
    }
    let at = text.char_indices().find(|(at, c)| {
        let exponent =
            *c == 'e' && text[at + 1..].starts_with(|c: char| c.is_ascii_digit() || c == '-' || c == '+');
        c.is_ascii_alphabetic() && !exponent
    });
    match at {
        Some((at, _)) => typed(text, at),
        None => Ok((text, None)),
    }
}

fn typed(text: &str, at: usize) -> Result<(&str, Option<Type>), String> {
    let (digits, word) = text.split_at(at);
    match Type::from_word(word).filter(|ty| *ty != Type::Bool) {
        Some(ty) => Ok((digits, Some(ty))),
        None => Err(format!("`{word}` is no type of a number")),
    }
}
