//! Arrays with another element type.

use super::Array;
use crate::element_type::ElementType;

/// Why an array cannot be converted.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub(crate) enum CastError {
    /// A value that the new type does not have.
    #[error("element {index} is {value}, which is not a value of {to}")]
    Value {
        /// Which element.
        index: usize,
        /// Its value.
        value: String,
        /// The new type.
        to: ElementType,
    },
    /// Real and complex numbers.
    #[error("{from} elements cannot be converted to {to}")]
    Types {
        /// The old type.
        from: ElementType,
        /// The new type.
        to: ElementType,
    },
    /// No memory for the converted array.
    #[error("there is not enough memory to convert it")]
    Memory,
}

/// A number on its way from one type to another.
#[derive(Clone, Copy)]
enum Number {
    Integer(i128),
    Float(f64),
}

impl Array {
    /// The array with its elements converted. Floating-point numbers are rounded to the nearest; a value that the new type does not
    /// have is an error.
    pub(crate) fn cast(&self, to: ElementType) -> Result<Self, CastError> {
        let from = self.element;
        if from.is_complex() != to.is_complex() {
            return Err(CastError::Types { from, to });
        }
        let (read, write) = (component(from), component(to));
        let parts = self.bytes.chunks_exact(read.bytes() as usize);
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(parts.len() * write.bytes() as usize).map_err(|_| CastError::Memory)?;
        for (at, part) in parts.enumerate() {
            let number = Number::read(read, part);
            let converted = number.write(write).ok_or_else(|| CastError::Value {
                index: at / if from.is_complex() { 2 } else { 1 },
                value: number.to_string(),
                to,
            })?;
            bytes.extend_from_slice(&converted);
        }
        Ok(Self { element: to, shape: self.shape.clone(), bytes })
    }
}

impl Array {
    /// A number of this array, or the parts of a complex one, as floats; none for integers.
    pub(crate) fn floats_of(&self, bytes: &[u8]) -> Option<Vec<f64>> {
        self.numbers_of(bytes)
            .map(|number| match number {
                Number::Float(value) => Some(value),
                Number::Integer(_) => None,
            })
            .collect()
    }

    /// A number of this array in words.
    pub(crate) fn text_of(&self, bytes: &[u8]) -> String {
        let parts: Vec<String> = self
            .numbers_of(bytes)
            .map(|number| match (component(self.element), number) {
                // No more digits than tell it from its neighbours.
                (ElementType::F32, Number::Float(value)) => (value as f32).to_string(),
                _ => number.to_string(),
            })
            .collect();
        if parts.len() == 1 { parts.concat() } else { format!("({})", parts.join(", ")) }
    }

    fn numbers_of<'b>(&self, bytes: &'b [u8]) -> impl Iterator<Item = Number> + use<'b> {
        let element = component(self.element);
        bytes.chunks_exact(element.bytes().max(1) as usize).map(move |part| Number::read(element, part))
    }
}

/// The type of a real number: of the parts, for a complex one.
fn component(element: ElementType) -> ElementType {
    match element {
        ElementType::Complex64 => ElementType::F32,
        ElementType::Complex128 => ElementType::F64,
        real => real,
    }
}

impl Number {
    fn read(element: ElementType, bytes: &[u8]) -> Self {
        let mut word = [0; 8];
        word.iter_mut().zip(bytes).for_each(|(into, from)| *into = *from);
        let bits = u64::from_le_bytes(word);
        match element {
            ElementType::F64 | ElementType::Complex128 => Self::Float(f64::from_bits(bits)),
            ElementType::F32 | ElementType::Complex64 => Self::Float(f64::from(f32::from_bits(bits as u32))),
            ElementType::F16 => Self::Float(half::f16::from_bits(bits as u16).to_f64()),
            ElementType::Bf16 => Self::Float(half::bf16::from_bits(bits as u16).to_f64()),
            ElementType::I8 => Self::Integer(i128::from(bits as i8)),
            ElementType::I16 => Self::Integer(i128::from(bits as i16)),
            ElementType::I32 => Self::Integer(i128::from(bits as i32)),
            ElementType::I64 => Self::Integer(i128::from(bits as i64)),
            _ => Self::Integer(i128::from(bits)),
        }
    }

    /// Its bytes in another type; none where that does not have it.
    fn write(self, element: ElementType) -> Option<Vec<u8>> {
        if element.is_float() {
            let value = match self {
                Self::Integer(value) => value as f64,
                Self::Float(value) => value,
            };
            let (bytes, kept) = match element {
                ElementType::F16 => {
                    let value = half::f16::from_f64(value);
                    (value.to_le_bytes().to_vec(), value.to_f64())
                }
                ElementType::Bf16 => {
                    let value = half::bf16::from_f64(value);
                    (value.to_le_bytes().to_vec(), value.to_f64())
                }
                ElementType::F32 => ((value as f32).to_le_bytes().to_vec(), f64::from(value as f32)),
                _ => (value.to_le_bytes().to_vec(), value),
            };
            // A finite number does not become an infinite one.
            return (kept.is_finite() == value.is_finite()).then_some(bytes);
        }
        let value = match self {
            Self::Integer(value) => value,
            Self::Float(value) if value.fract() == 0.0 && value.abs() < 2_f64.powi(64) => value as i128,
            Self::Float(_) => return None,
        };
        match element {
            ElementType::Bool => u8::try_from(value).ok().filter(|value| *value < 2).map(|value| vec![value]),
            _ => element.parse_value(&value.to_string()),
        }
    }
}

impl std::fmt::Display for Number {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Integer(value) => write!(f, "{value}"),
            Self::Float(value) => write!(f, "{value}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn array(element: ElementType, bytes: Vec<u8>) -> Array {
        Array { element, shape: vec![bytes.len() as u64 / element.bytes()], bytes }
    }

    #[test]
    fn numbers_keep_their_value_or_are_refused() {
        let doubles =
            |list: &[f64]| array(ElementType::F64, list.iter().flat_map(|x| x.to_le_bytes()).collect());
        let floats = doubles(&[0.1, -2.5, f64::INFINITY]).cast(ElementType::F32).unwrap();
        assert_eq!(floats.bytes, [0.1_f32, -2.5, f32::INFINITY].map(f32::to_le_bytes).concat());
        assert_eq!((floats.element, floats.shape), (ElementType::F32, vec![3]));
        let whole = doubles(&[3.0, -7.0]).cast(ElementType::I32).unwrap();
        assert_eq!(whole.bytes, [3_i32, -7].map(i32::to_le_bytes).concat());
        for (list, to, index) in [
            (&[1.0, 1e300][..], ElementType::F32, 1),
            (&[0.5], ElementType::I32, 0),
            (&[0.0, 1.0, -1.0], ElementType::U8, 2),
            (&[f64::NAN], ElementType::I64, 0),
            (&[70000.0], ElementType::F16, 0),
        ] {
            let error = doubles(list).cast(to).unwrap_err();
            assert!(matches!(error, CastError::Value { index: at, .. } if at == index), "{error}");
        }
    }

    #[test]
    fn integers_and_complex_numbers_are_converted_too() {
        let longs = array(ElementType::I64, [-1_i64, 1 << 40].map(i64::to_le_bytes).concat());
        assert!(longs.cast(ElementType::I32).unwrap_err().to_string().contains("element 1 is 1099511627776"));
        assert_eq!(
            longs.cast(ElementType::F64).unwrap().bytes,
            [-1.0_f64, 1099511627776.0].map(f64::to_le_bytes).concat()
        );
        let complex = array(ElementType::Complex128, [1.0_f64, -2.0].map(f64::to_le_bytes).concat());
        assert_eq!(
            complex.cast(ElementType::Complex64).unwrap().bytes,
            [1.0_f32, -2.0].map(f32::to_le_bytes).concat()
        );
        assert!(complex.cast(ElementType::F32).is_err());
        let bools = array(ElementType::Bool, vec![1, 0]);
        assert_eq!(
            bools.cast(ElementType::F32).unwrap().bytes,
            [1.0_f32, 0.0].map(f32::to_le_bytes).concat()
        );
    }
}
