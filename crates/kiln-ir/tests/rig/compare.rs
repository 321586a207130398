//! Whether two launches left the same, and how to show it if not.

use kiln_ir::{Buffer, Literal, Program, Type};

use super::Left;

/// Equal to the bit, except that one NaN is as good as another.
pub(crate) fn same(program: &Program, a: &Left, b: &Left) -> bool {
    match (a, b) {
        (Left::Buffers(a), Left::Buffers(b)) => program
            .buffers
            .iter()
            .zip(a.iter().zip(b))
            .all(|(buffer, (a, b))| same_elements(buffer.element, a, b)),
        _ => a == b,
    }
}

/// The same of one buffer.
pub(crate) fn same_elements(ty: Type, a: &[u8], b: &[u8]) -> bool {
    let is_same = |(a, b): (&Literal, &Literal)| {
        a == b || (ty.is_float() && a.as_float().is_nan() && b.as_float().is_nan())
    };
    a.len() == b.len() && literals(ty, a).iter().zip(&literals(ty, b)).all(is_same)
}

/// The buffers that differ, as lists of elements.
pub(crate) fn describe(program: &Program, a: &Left, b: &Left) -> String {
    let (Left::Buffers(a), Left::Buffers(b)) = (a, b) else { return format!("{a:?}\n{b:?}") };
    let line = |(buffer, (a, b)): (&Buffer, (&Vec<u8>, &Vec<u8>))| {
        format!("{}: {}\n  not {}", buffer.name, words(buffer.element, a), words(buffer.element, b))
    };
    let pairs = program.buffers.iter().zip(a.iter().zip(b));
    pairs.filter(|(_, (a, b))| a != b).map(line).collect::<Vec<_>>().join("\n")
}

/// Elements as text.
pub(crate) fn words(ty: Type, bytes: &[u8]) -> String {
    literals(ty, bytes).iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
}

fn literals(ty: Type, bytes: &[u8]) -> Vec<Literal> {
    let literal = |bytes: &[u8]| {
        let mut word = [0; 8];
        word[..bytes.len()].copy_from_slice(bytes);
        Literal::new(ty, u64::from_le_bytes(word))
    };
    bytes.chunks(ty.bytes() as usize).map(literal).collect()
}
