//! The types of array elements and values, by the names that Rust and numpy give them.

use std::fmt;
use std::str::FromStr;

/// The type of an element or a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub(crate) enum ElementType {
    Bool,
    I8,
    U8,
    I16,
    U16,
    I32,
    U32,
    I64,
    U64,
    F16,
    Bf16,
    F32,
    F64,
    Complex64,
    Complex128,
}

/// The names of a type.
struct Names {
    element: ElementType,
    rust: &'static str,
    numpy: &'static str,
    /// In the header of a `.npy` file.
    descr: &'static str,
    bytes: u64,
}

const fn names(
    element: ElementType,
    rust: &'static str,
    numpy: &'static str,
    descr: &'static str,
    bytes: u64,
) -> Names {
    Names { element, rust, numpy, descr, bytes }
}

/// All types. Numpy has no bf16: its bits are stored as `<u2`, and a file of that type reads as u16.
const TABLE: [Names; 15] = [
    names(ElementType::Bool, "bool", "bool", "|b1", 1),
    names(ElementType::I8, "i8", "int8", "|i1", 1),
    names(ElementType::U8, "u8", "uint8", "|u1", 1),
    names(ElementType::I16, "i16", "int16", "<i2", 2),
    names(ElementType::U16, "u16", "uint16", "<u2", 2),
    names(ElementType::I32, "i32", "int32", "<i4", 4),
    names(ElementType::U32, "u32", "uint32", "<u4", 4),
    names(ElementType::I64, "i64", "int64", "<i8", 8),
    names(ElementType::U64, "u64", "uint64", "<u8", 8),
    names(ElementType::F16, "f16", "float16", "<f2", 2),
    names(ElementType::Bf16, "bf16", "bfloat16", "<u2", 2),
    names(ElementType::F32, "f32", "float32", "<f4", 4),
    names(ElementType::F64, "f64", "float64", "<f8", 8),
    names(ElementType::Complex64, "complex64", "complex64", "<c8", 8),
    names(ElementType::Complex128, "complex128", "complex128", "<c16", 16),
];

impl ElementType {
    fn names(self) -> &'static Names {
        // The table has a row for every type, in their order.
        &TABLE[self as usize]
    }

    /// The names of all types, with commas.
    pub(crate) fn all_names() -> String {
        TABLE.iter().map(|names| names.rust).collect::<Vec<_>>().join(", ")
    }

    /// Bytes of one element.
    pub(crate) fn bytes(self) -> u64 {
        self.names().bytes
    }

    /// Bytes of a number: of the real part, for complex numbers.
    pub(crate) fn component_bytes(self) -> u64 {
        if self.is_complex() { self.bytes() / 2 } else { self.bytes() }
    }

    /// The name numpy gives it.
    pub(crate) fn numpy(self) -> &'static str {
        self.names().numpy
    }

    /// Its spelling in the header of a `.npy` file.
    pub(crate) fn descr(self) -> &'static str {
        self.names().descr
    }

    /// The type with that spelling in the header of a `.npy` file.
    pub(crate) fn from_descr(descr: &str) -> Option<Self> {
        TABLE.iter().find(|names| names.descr == descr).map(|names| names.element)
    }

    /// Whether it is a floating-point number.
    pub(crate) fn is_float(self) -> bool {
        matches!(self, Self::F16 | Self::Bf16 | Self::F32 | Self::F64)
    }

    /// Whether it is a complex number.
    pub(crate) fn is_complex(self) -> bool {
        matches!(self, Self::Complex64 | Self::Complex128)
    }

    /// Whether it is a signed integer.
    pub(crate) fn is_signed(self) -> bool {
        matches!(self, Self::I8 | Self::I16 | Self::I32 | Self::I64)
    }

    /// The little-endian bytes of a value written as text.
    pub(crate) fn parse_value(self, text: &str) -> Option<Vec<u8>> {
        macro_rules! float {
            ($type:ty) => {
                text.parse::<$type>().ok().map(|value| value.to_le_bytes().to_vec())
            };
        }
        match self {
            Self::Bool => match text {
                "true" | "True" | "1" => Some(vec![1]),
                "false" | "False" | "0" => Some(vec![0]),
                _ => None,
            },
            Self::F32 => float!(f32),
            Self::F64 => float!(f64),
            // Rounding once from the text and once more from f64 can differ from one rounding by a last bit only where the text
            // has more than sixteen digits.
            Self::F16 => {
                text.parse::<f64>().ok().map(|value| half::f16::from_f64(value).to_le_bytes().to_vec())
            }
            Self::Bf16 => {
                text.parse::<f64>().ok().map(|value| half::bf16::from_f64(value).to_le_bytes().to_vec())
            }
            Self::Complex64 | Self::Complex128 => None,
            _ => self.parse_integer(text),
        }
    }

    fn parse_integer(self, text: &str) -> Option<Vec<u8>> {
        let (negative, digits) = match text.strip_prefix('-') {
            Some(digits) => (true, digits),
            None => (false, text),
        };
        let magnitude = match digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
            Some(hex) if !hex.starts_with('+') => u64::from_str_radix(hex, 16).ok()?,
            Some(_) => return None,
            None => digits.parse::<u64>().ok()?,
        };
        let value = if negative { -i128::from(magnitude) } else { i128::from(magnitude) };
        macro_rules! narrow {
            ($type:ty) => {
                <$type>::try_from(value).ok().map(|value| value.to_le_bytes().to_vec())
            };
        }
        match self {
            Self::I8 => narrow!(i8),
            Self::U8 => narrow!(u8),
            Self::I16 => narrow!(i16),
            Self::U16 => narrow!(u16),
            Self::I32 => narrow!(i32),
            Self::U32 => narrow!(u32),
            Self::I64 => narrow!(i64),
            _ => narrow!(u64),
        }
    }
}

impl FromStr for ElementType {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = TABLE.iter().find(|names| names.rust == text || names.numpy == text);
        known.map(|names| names.element).ok_or_else(|| {
            let all = Self::all_names();
            format!("`{text}` is not an element type; write one of {all}, or numpy's name such as float32")
        })
    }
}

impl fmt::Display for ElementType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.names().rust)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_the_order_of_the_types() {
        for (at, names) in TABLE.iter().enumerate() {
            assert_eq!(names.element as usize, at, "{}", names.rust);
            assert_eq!(names.rust.parse(), Ok(names.element));
            assert_eq!(names.numpy.parse(), Ok(names.element));
        }
        assert!("i4".parse::<ElementType>().unwrap_err().contains("float32"));
    }

    #[test]
    fn values_are_read_as_their_type_or_not_at_all() {
        let bytes = |element: ElementType, text: &str| element.parse_value(text);
        assert_eq!(bytes(ElementType::F32, "2.5"), Some(2.5_f32.to_le_bytes().to_vec()));
        assert_eq!(bytes(ElementType::F64, "-inf"), Some(f64::NEG_INFINITY.to_le_bytes().to_vec()));
        assert_eq!(bytes(ElementType::F16, "1.5"), Some(vec![0x00, 0x3e]));
        assert_eq!(bytes(ElementType::Bf16, "1.5"), Some(vec![0xc0, 0x3f]));
        assert_eq!(bytes(ElementType::I8, "-128"), Some(vec![0x80]));
        assert_eq!(bytes(ElementType::U16, "0xBEEF"), Some(vec![0xef, 0xbe]));
        assert_eq!(bytes(ElementType::U64, "18446744073709551615"), Some(vec![0xff; 8]));
        assert_eq!(bytes(ElementType::I64, "-9223372036854775808"), Some(i64::MIN.to_le_bytes().to_vec()));
        assert_eq!(bytes(ElementType::Bool, "true"), Some(vec![1]));
        for (element, text) in [
            (ElementType::I8, "128"),
            (ElementType::U8, "-1"),
            (ElementType::U64, "18446744073709551616"),
            (ElementType::I32, "2.5"),
            (ElementType::I32, ""),
            (ElementType::I32, "--1"),
            (ElementType::I32, "0x-1"),
            (ElementType::Bool, "2"),
            (ElementType::F32, "two"),
            (ElementType::Complex64, "1"),
        ] {
            assert_eq!(bytes(element, text), None, "{element} {text}");
        }
    }
}
