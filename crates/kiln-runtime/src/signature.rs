//! What is known of a kernel's parameters, and what does not fit them. Knows no device.

mod mismatch;
mod parameter_slot;
mod value_kind;

use std::fmt;

use kiln_driver::{Access, FunctionAttributes, Limits, ParameterSpan};

pub use mismatch::{Given, Mismatch, ParameterName};
pub use value_kind::Number;

pub(crate) use mismatch::{explain, fits};
pub(crate) use parameter_slot::{Slot, SlotList};

/// The parameters of a kernel, in order.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Signature {
    parameters: Vec<Parameter>,
    bytes: u32,
}

/// One parameter.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Parameter {
    /// Its name, where there is one.
    pub name: Option<String>,
    /// Where it lies in the packed arguments.
    pub offset: u32,
    /// How many bytes it has.
    pub bytes: u32,
    /// What it is.
    pub kind: ParameterKind,
    /// What the bits of a value mean, where that is known.
    pub number: Number,
}

/// What a parameter is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ParameterKind {
    /// A number or a struct by value.
    Value,
    /// An address, and what the kernel does through it.
    Pointer(Effect),
    /// A tensor map by value, or a struct of the same size and alignment that begins with an address, and what the kernel does through it.
    TensorMap(Effect),
    /// Not known; either may be given.
    Unknown,
}

/// What a kernel does through a pointer.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Effect {
    /// Nothing.
    None,
    /// It reads.
    Reads,
    /// It writes.
    Writes,
    /// It does both.
    ReadsAndWrites,
    /// Not known; what the caller declares is believed.
    Unknown,
}

impl Effect {
    /// Whether a declared access covers what the kernel does. Declaring more than it does is allowed and may cost a wait.
    #[inline]
    pub fn allows(self, declared: Access) -> bool {
        match self {
            Self::None | Self::Reads | Self::Unknown => true,
            Self::Writes | Self::ReadsAndWrites => declared.writes(),
        }
    }
}

impl fmt::Display for Effect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "neither reads nor writes",
            Self::Reads => "reads",
            Self::Writes => "writes",
            Self::ReadsAndWrites => "reads and writes",
            Self::Unknown => "may read or write",
        })
    }
}

impl Signature {
    /// A signature from its parameters; the packed arguments end with the last of them.
    pub fn new(parameters: Vec<Parameter>) -> Self {
        let bytes = parameters.iter().map(|each| each.offset.saturating_add(each.bytes)).max().unwrap_or(0);
        Self { parameters, bytes }
    }

    /// What the driver knows: offsets and sizes, where it can tell.
    pub fn from_attributes(attributes: &FunctionAttributes) -> Option<Self> {
        let spans = attributes.parameters.as_ref()?;
        let parameter = |span: &ParameterSpan| Parameter {
            name: None,
            offset: span.offset,
            bytes: span.bytes,
            kind: if span.bytes == 8 { ParameterKind::Unknown } else { ParameterKind::Value },
            number: Number::Unknown,
        };
        Some(Self::new(spans.iter().map(parameter).collect()))
    }

    /// The signature with the offsets of the device. Refuses one that cannot be the kernel's: where the driver knows the layout it has to agree, and
    /// otherwise to be one that the device can pass.
    pub(crate) fn placed(
        mut self,
        kernel: &str,
        attributes: &FunctionAttributes,
        limits: &Limits,
    ) -> Result<Self, Mismatch> {
        let given = || self.parameters.iter().map(|each| (each.offset, each.bytes));
        let wanted = match &attributes.parameters {
            Some(spans) if is_layout(spans, &self.parameters) => {
                self.parameters.iter_mut().zip(spans).for_each(|(each, span)| each.offset = span.offset);
                return Ok(Self::new(self.parameters));
            }
            Some(spans) => layout(spans.iter().map(|span| (span.offset, span.bytes))),
            None if self.bytes > limits.max_argument_bytes => {
                format!("no more than {} bytes", limits.max_argument_bytes)
            }
            None => return Ok(self),
        };
        Err(Mismatch::Layout { kernel: kernel.to_owned(), wanted, given: layout(given()) })
    }

    /// The parameters.
    pub fn parameters(&self) -> &[Parameter] {
        &self.parameters
    }

    /// Bytes of the packed arguments.
    pub fn bytes(&self) -> u32 {
        self.bytes
    }
}

/// What the address of the first parameter is a multiple of, on every device.
const BASE_ALIGN: u32 = 16;

/// Whether a device may lay parameters out like that. One that is aligned to more than the first parameter is (a tensor map, to 64 bytes) lies at an address and
/// not at an offset that is a multiple: it and those behind it may have other offsets than in the text.
fn is_layout(spans: &[ParameterSpan], parameters: &[Parameter]) -> bool {
    // A type is at least as large as its alignment, and a multiple of it.
    let may_move =
        |parameter: &Parameter| parameter.bytes > 0 && parameter.bytes.is_multiple_of(2 * BASE_ALIGN);
    let first = parameters.iter().position(may_move).unwrap_or(parameters.len());
    let mut end = 0;
    spans.len() == parameters.len()
        && spans.iter().zip(parameters).enumerate().all(|(at, (span, parameter))| {
            let follows = span.offset >= std::mem::replace(&mut end, span.offset.saturating_add(span.bytes));
            span.bytes == parameter.bytes && (span.offset == parameter.offset || at >= first && follows)
        })
}

/// Offsets and sizes in words.
fn layout(spans: impl Iterator<Item = (u32, u32)>) -> String {
    let spans: Vec<String> = spans.map(|(offset, bytes)| format!("{bytes} bytes at {offset}")).collect();
    if spans.is_empty() { "nothing".to_owned() } else { spans.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(spans: &[(u32, u32)]) -> (Vec<ParameterSpan>, Vec<Parameter>) {
        let parameter = |(offset, bytes): &(u32, u32)| Parameter {
            name: None,
            offset: *offset,
            bytes: *bytes,
            kind: ParameterKind::Value,
            number: Number::Unknown,
        };
        let span = |(offset, bytes): &(u32, u32)| ParameterSpan { offset: *offset, bytes: *bytes };
        (spans.iter().map(span).collect(), spans.iter().map(parameter).collect())
    }

    #[test]
    fn a_device_moves_parameters_that_are_aligned_to_more_than_the_first_one() {
        let fits = |device: &[(u32, u32)], text: &[(u32, u32)]| is_layout(&list(device).0, &list(text).1);
        assert!(fits(&[(0, 8), (8, 4)], &[(0, 8), (8, 4)]));
        // As an H200 lays out a tensor map and two pointers.
        assert!(fits(&[(48, 128), (176, 8), (184, 8)], &[(0, 128), (128, 8), (136, 8)]));
        assert!(fits(&[(0, 8), (48, 128)], &[(0, 8), (64, 128)]));
        assert!(!fits(&[(0, 8), (16, 8)], &[(0, 8), (8, 8)]));
        assert!(!fits(&[(8, 8), (48, 128)], &[(0, 8), (64, 128)]));
        assert!(!fits(&[(48, 128), (170, 8)], &[(0, 128), (128, 8)]));
        assert!(!fits(&[(48, 128), (176, 4)], &[(0, 128), (128, 8)]));
        assert!(!fits(&[(0, 128)], &[(0, 128), (128, 8)]));
    }
}
