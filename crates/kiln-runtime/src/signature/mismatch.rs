//! Why a launch was not made. Nothing was queued or stamped.

use std::fmt;

use kiln_driver::{Access, Dim3, TENSOR_MAP_BYTES};

use super::value_kind::Number;
use super::{Effect, Parameter, ParameterKind};

/// What does not fit, with the kernel, the parameter and both sides.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Mismatch {
    /// Too many or too few arguments.
    #[error(
        "kernel `{kernel}` takes {wanted} arguments, and {given} were given; give one for each parameter, in their order"
    )]
    Count {
        /// The kernel.
        kernel: String,
        /// What it takes.
        wanted: usize,
        /// What it got.
        given: usize,
    },
    /// A buffer where a value belongs, or the other way round.
    #[error(
        "kernel `{kernel}`, {parameter}: it is {wanted}, and {given} was given; give a buffer for a pointer and `.value(…)` for a value, in the order of the parameters"
    )]
    Kind {
        /// The kernel.
        kernel: String,
        /// Which parameter.
        parameter: ParameterName,
        /// What it is, in words.
        wanted: &'static str,
        /// What it got.
        given: Given,
    },
    /// A buffer where a tensor map belongs.
    #[error(
        "kernel `{kernel}`, {parameter}: it is a tensor map, and {given} was given; make one with `DeviceRuntime::tensor_map`, and give it with `.read_map(…)` or `.write_map(…)`"
    )]
    NoMap {
        /// The kernel.
        kernel: String,
        /// Which parameter.
        parameter: ParameterName,
        /// What it got.
        given: Given,
    },
    /// A value of another size.
    #[error("kernel `{kernel}`, {parameter}: it has {wanted} bytes, and {given} were given; give a value of the type the kernel declares, such as `{}`", value_type(*wanted))]
    Size {
        /// The kernel.
        kernel: String,
        /// Which parameter.
        parameter: ParameterName,
        /// Its size.
        wanted: u32,
        /// The size of what was given.
        given: usize,
    },
    /// A floating point number where a whole one belongs, or the other way round.
    #[error(
        "kernel `{kernel}`, {parameter}: it is {wanted} of {bytes} bytes, and {given} of {bytes} bytes was given; convert it"
    )]
    Number {
        /// The kernel.
        kernel: String,
        /// Which parameter.
        parameter: ParameterName,
        /// What it is.
        wanted: Number,
        /// What it got.
        given: Number,
        /// The size of both.
        bytes: u32,
    },
    /// The kernel writes through an argument that was declared as read.
    #[error(
        "kernel `{kernel}`, {parameter}: it was declared as {declared}, and the kernel {effect} through it; declare it as written"
    )]
    Access {
        /// The kernel.
        kernel: String,
        /// Which parameter.
        parameter: ParameterName,
        /// What was declared.
        declared: Access,
        /// What the kernel does.
        effect: Effect,
    },
    /// No grid was given.
    #[error(
        "kernel `{kernel}`: no grid was given; call `.threads(n)`, or `.grid(blocks)` and `.block(threads)`"
    )]
    NoGrid {
        /// The kernel.
        kernel: String,
    },
    /// No block size was given.
    #[error(
        "kernel `{kernel}`: no block size was given; call `.block(threads)` beside `.grid(blocks)`, or `.threads(n)` instead of both"
    )]
    NoBlock {
        /// The kernel.
        kernel: String,
    },
    /// A grid, block or cluster the device cannot run.
    #[error("kernel `{kernel}`: a {what} of {given} is outside of the device's limits ({limit})")]
    Shape {
        /// The kernel.
        kernel: String,
        /// "grid", "block" or "cluster".
        what: &'static str,
        /// What was asked for.
        given: Dim3,
        /// What is possible.
        limit: String,
    },
    /// More shared memory than a block can have.
    #[error(
        "kernel `{kernel}`: {dynamic} bytes of dynamic and {fixed} of static shared memory exceed the {limit} a block can have"
    )]
    Shared {
        /// The kernel.
        kernel: String,
        /// What was asked for.
        dynamic: u32,
        /// What the kernel declares.
        fixed: u32,
        /// What is possible.
        limit: u32,
    },
    /// A cooperative launch that cannot be resident at once.
    #[error(
        "kernel `{kernel}`: a cooperative launch of {blocks} blocks exceeds the {limit} that can be resident"
    )]
    CooperativeResidencyExceeded {
        /// The kernel.
        kernel: String,
        /// Blocks of the launch.
        blocks: u64,
        /// Blocks that fit.
        limit: u64,
    },
    /// A signature that is not the kernel's.
    #[error(
        "kernel `{kernel}` takes {wanted}, and its signature says {given}; give it the signature of its text, or none"
    )]
    Layout {
        /// The kernel.
        kernel: String,
        /// What the driver knows, in words.
        wanted: String,
        /// What the signature says, in words.
        given: String,
    },
    /// The kernel was loaded by another runtime.
    #[error("kernel `{kernel}` was loaded by another runtime; load it with the one that launches it")]
    ForeignKernel {
        /// The kernel.
        kernel: String,
    },
}

/// A type of Rust that has so many bytes.
fn value_type(bytes: u32) -> String {
    match bytes {
        1 => "0u8".to_owned(),
        2 => "0u16".to_owned(),
        4 => "0u32".to_owned(),
        8 => "0u64".to_owned(),
        bytes => format!("[0u8; {bytes}]"),
    }
}

/// What was given for a parameter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Given {
    /// A value.
    Value {
        /// Its size.
        bytes: usize,
        /// What its bits mean, where that is known.
        number: Number,
    },
    /// A buffer.
    Buffer(Access),
    /// A tensor map, and what is done to its tensor.
    TensorMap(Access),
    /// A null pointer.
    Null,
}

impl Given {
    /// A value of a type.
    #[inline(always)]
    pub(crate) fn value_of<T: 'static>() -> Self {
        Self::Value { bytes: size_of::<T>(), number: Number::of::<T>() }
    }

    /// What is done to the memory behind it, if there is any.
    pub(crate) fn access(self) -> Option<Access> {
        match self {
            Self::Buffer(access) | Self::TensorMap(access) => Some(access),
            Self::Value { .. } | Self::Null => None,
        }
    }
}

impl fmt::Display for Given {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Value { bytes, number } => write!(f, "{number} of {bytes} bytes"),
            Self::Buffer(access) => write!(f, "a buffer to {access}"),
            Self::TensorMap(access) => write!(f, "a tensor map of a buffer to {access}"),
            Self::Null => f.write_str("a null pointer"),
        }
    }
}

/// A parameter in words: its place, counted from 0, and its name where there is one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ParameterName {
    /// Its place.
    pub index: usize,
    /// Its name.
    pub name: Option<String>,
}

impl ParameterName {
    pub(crate) fn of(index: usize, parameter: &Parameter) -> Self {
        Self { index, name: parameter.name.clone() }
    }
}

impl fmt::Display for ParameterName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            Some(name) => write!(f, "parameter {} (`{name}`)", self.index),
            None => write!(f, "parameter {}", self.index),
        }
    }
}

/// Whether an argument fits its parameter.
pub(crate) fn fits(parameter: &Parameter, given: Given) -> bool {
    match (parameter.kind, given) {
        (ParameterKind::Pointer(effect), Given::Buffer(declared)) => effect.allows(declared),
        (ParameterKind::Unknown, Given::Buffer(_)) | (ParameterKind::Pointer(_), Given::Null) => true,
        (ParameterKind::Unknown, Given::Null) => parameter.bytes as usize == size_of::<u64>(),
        (
            ParameterKind::Value | ParameterKind::TensorMap(_) | ParameterKind::Unknown,
            Given::Value { bytes, number },
        ) => bytes == parameter.bytes as usize && !number.contradicts(parameter.number),
        (ParameterKind::TensorMap(effect), Given::TensorMap(declared)) => {
            is_map_sized(parameter) && effect.allows(declared)
        }
        (ParameterKind::Value, Given::TensorMap(_)) => is_map_sized(parameter),
        (ParameterKind::Value | ParameterKind::TensorMap(_), Given::Buffer(_) | Given::Null)
        | (ParameterKind::Pointer(_), Given::Value { .. } | Given::TensorMap(_))
        | (ParameterKind::Unknown, Given::TensorMap(_)) => false,
    }
}

fn is_map_sized(parameter: &Parameter) -> bool {
    parameter.bytes as usize == TENSOR_MAP_BYTES
}

/// What to say of an argument that does not fit.
#[cold]
pub(crate) fn explain(kernel: &str, index: usize, parameter: &Parameter, given: Given) -> Mismatch {
    let (kernel, name) = (kernel.to_owned(), ParameterName::of(index, parameter));
    match (parameter.kind, given) {
        (ParameterKind::Pointer(_), Given::Value { .. } | Given::TensorMap(_)) => {
            Mismatch::Kind { kernel, parameter: name, wanted: "a pointer", given }
        }
        (ParameterKind::TensorMap(effect), Given::TensorMap(declared)) if is_map_sized(parameter) => {
            Mismatch::Access { kernel, parameter: name, declared, effect }
        }
        (ParameterKind::Pointer(effect), Given::Buffer(declared)) => {
            Mismatch::Access { kernel, parameter: name, declared, effect }
        }
        (_, Given::Value { bytes, number }) if bytes == parameter.bytes as usize => {
            let (wanted, bytes) = (parameter.number, parameter.bytes);
            Mismatch::Number { kernel, parameter: name, wanted, given: number, bytes }
        }
        (_, Given::Value { bytes, .. }) => {
            Mismatch::Size { kernel, parameter: name, wanted: parameter.bytes, given: bytes }
        }
        (_, Given::TensorMap(_)) => {
            Mismatch::Size { kernel, parameter: name, wanted: parameter.bytes, given: TENSOR_MAP_BYTES }
        }
        (ParameterKind::TensorMap(_), Given::Buffer(_) | Given::Null) => {
            Mismatch::NoMap { kernel, parameter: name, given }
        }
        (_, Given::Buffer(_) | Given::Null) => {
            Mismatch::Kind { kernel, parameter: name, wanted: "a value", given }
        }
    }
}
