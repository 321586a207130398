//! Floating point elements of collectives that have 8 or 16 bits.

use kiln_operation::{CollectiveType, ElementType};

use super::number;

fn element_type(element: CollectiveType) -> Option<ElementType> {
    match element {
        CollectiveType::F8E4M3 => Some(ElementType::F8E4M3),
        CollectiveType::F16 => Some(ElementType::F16),
        CollectiveType::Bf16 => Some(ElementType::Bf16),
        _ => None,
    }
}

/// The number at the beginning of these bytes; zero for another type.
pub(crate) fn decode(element: CollectiveType, bytes: &[u8]) -> f64 {
    let number =
        |element| Some(number::decode(element, bytes.get(..usize::try_from(element.bytes()).ok()?)?));
    element_type(element).and_then(number).unwrap_or(0.0)
}

/// Writes the nearest number of the type. Other types stay as they are.
pub(crate) fn encode(element: CollectiveType, value: f64, into: &mut [u8]) {
    let Some(narrow) = element_type(element) else { return };
    let mut bytes = Vec::with_capacity(2);
    match narrow {
        ElementType::F8E4M3 => bytes.push(number::encode_f8e4m3(value)),
        other => number::encode(other, value, &mut bytes),
    }
    into.iter_mut().zip(bytes).for_each(|(to, byte)| *to = byte);
}
