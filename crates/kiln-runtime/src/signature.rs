//! What is known of a kernel's parameters, and what does not fit them. Knows no device.

mod mismatch;
mod parameter_slot;
mod value_kind;

use std::fmt;

use kiln_driver::{Access, FunctionAttributes, Limits};

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
        let parameter = |span: &kiln_driver::ParameterSpan| Parameter {
            name: None,
            offset: span.offset,
            bytes: span.bytes,
            kind: if span.bytes == 8 { ParameterKind::Unknown } else { ParameterKind::Value },
            number: Number::Unknown,
        };
        Some(Self::new(spans.iter().map(parameter).collect()))
    }

    /// Refuses a signature that cannot be the kernel's: where the driver knows the layout it has to agree, and otherwise to be one that the
    /// device can pass.
    pub(crate) fn check(
        &self,
        kernel: &str,
        attributes: &FunctionAttributes,
        limits: &Limits,
    ) -> Result<(), Mismatch> {
        let given = || self.parameters.iter().map(|each| (each.offset, each.bytes));
        let known =
            attributes.parameters.as_ref().map(|spans| spans.iter().map(|span| (span.offset, span.bytes)));
        let wanted = match known {
            Some(spans) if !spans.clone().eq(given()) => layout(spans),
            None if self.bytes > limits.max_argument_bytes => {
                format!("no more than {} bytes", limits.max_argument_bytes)
            }
            _ => return Ok(()),
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

/// Offsets and sizes in words.
fn layout(spans: impl Iterator<Item = (u32, u32)>) -> String {
    let spans: Vec<String> = spans.map(|(offset, bytes)| format!("{bytes} bytes at {offset}")).collect();
    if spans.is_empty() { "nothing".to_owned() } else { spans.join(", ") }
}
