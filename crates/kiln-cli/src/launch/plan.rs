//! Arguments that fit their kernel.
//!
//! Everything that can be said without a device is said here: how many arguments, numbers or arrays, their sizes, and whether the
//! kernel does to an array what was declared. The runtime checks the same again when the launch is made.

use std::path::{Path, PathBuf};

use kiln_ptx::{Access, EntryFacts, Parameter, ParameterKind, ScalarKind};
use serde::Serialize;

use crate::failure::Failure;
use crate::npy::Array;
use crate::source_file::readable;
use crate::spec::Spec;

/// The arguments of a launch: read from their files, and checked.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) arguments: Vec<Argument>,
}

/// One argument.
#[derive(Debug)]
pub(crate) enum Argument {
    /// Bytes by value.
    Value(Vec<u8>),
    /// An array, what is declared of it, and where it goes afterwards.
    Array { array: Array, access: kiln_driver::Access, to: Option<PathBuf> },
}

/// An argument as the reports list it.
#[derive(Clone, Serialize, Debug)]
pub(crate) struct ArgumentSheet {
    pub(crate) index: usize,
    /// What a program calls it.
    pub(crate) name: Option<String>,
    pub(crate) given: String,
    /// What the kernel does through it, for arrays.
    pub(crate) effect: Option<&'static str>,
    pub(crate) element: String,
    /// For arrays.
    pub(crate) shape: Option<Vec<u64>>,
    pub(crate) bytes: u64,
}

impl Plan {
    /// Reads the files of the arguments.
    pub(crate) fn read(specs: &[Spec]) -> Result<Self, Failure> {
        let outputs: Vec<&PathBuf> = specs.iter().filter_map(Spec::output).collect();
        for (at, path) in outputs.iter().enumerate() {
            if outputs[..at].contains(path) {
                return Err(Failure::file(path, "two arguments are to be written to it"));
            }
            check_folder(path)?;
        }
        let arguments = specs.iter().map(Argument::read).collect::<Result<_, _>>()?;
        Ok(Self { arguments })
    }

    /// Holds the arguments against what is known of the kernel.
    pub(crate) fn check(&self, specs: &[Spec], facts: &EntryFacts) -> Result<Vec<ArgumentSheet>, Failure> {
        let parameters = &facts.signature.parameters;
        if parameters.len() != specs.len() {
            let (wanted, given) = (parameters.len(), specs.len());
            return Err(Failure::refused(format!(
                "kernel `{}` takes {wanted} arguments, and {given} were given; `kiln inspect` lists its parameters",
                readable(&facts.name)
            )));
        }
        let mut sheets = Vec::new();
        for (index, ((spec, argument), parameter)) in
            specs.iter().zip(&self.arguments).zip(parameters).enumerate()
        {
            if let Some(why) = misfit(spec, argument, parameter) {
                let kernel = readable(&facts.name);
                return Err(Failure::refused(format!("kernel `{kernel}`, argument {index}, {spec}: {why}")));
            }
            let access = parameter.pointers.first().map_or(Access::Unknown, |field| field.effect.access());
            sheets.push(ArgumentSheet::of(index, None, spec, argument, Some(access.word())));
        }
        Ok(sheets)
    }
}

impl Argument {
    fn read(spec: &Spec) -> Result<Self, Failure> {
        let load = |path: &Path| -> Result<Array, Failure> {
            let file = std::fs::read(path).map_err(|error| Failure::file(path, error))?;
            Array::decode(&file).map_err(|error| Failure::file(path, error))
        };
        Ok(match spec {
            Spec::Value { bytes, .. } => Self::Value(bytes.clone()),
            Spec::In { from } => {
                Self::Array { array: load(from)?, access: kiln_driver::Access::Read, to: None }
            }
            Spec::InOut { from, to } => Self::Array {
                array: load(from)?,
                access: kiln_driver::Access::ReadWrite,
                to: Some(to.clone()),
            },
            Spec::Out { element, len, to } => Self::Array {
                array: Array::zeros(*element, *len)
                    .ok_or_else(|| Failure::usage(format!("{spec}: this machine has no room for it")))?,
                // It begins as zeros, which the kernel may read.
                access: kiln_driver::Access::ReadWrite,
                to: Some(to.clone()),
            },
        })
    }
}

/// Refuses a place nothing can be moved to, before anything runs.
fn check_folder(path: &Path) -> Result<(), Failure> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if path.file_name().is_none() || path.is_dir() {
        return Err(Failure::file(path, "it is no name of a file"));
    }
    if folder.is_dir() { Ok(()) } else { Err(Failure::file(path, "its folder does not exist")) }
}

/// Why an argument does not fit its parameter.
fn misfit(spec: &Spec, argument: &Argument, parameter: &Parameter) -> Option<String> {
    let bytes = parameter.size_bytes;
    match (argument, parameter.kind) {
        (Argument::Value(_), ParameterKind::Pointer) => {
            Some("the parameter is a pointer; give an array with in:, out: or inout:".into())
        }
        (Argument::Value(value), kind) if value.len() as u64 != bytes => Some(match kind {
            ParameterKind::Bytes => {
                format!("the parameter is a structure of {bytes} bytes; structures cannot be given")
            }
            _ => format!("the parameter has {bytes} bytes, and the value {}", value.len()),
        }),
        (Argument::Value(_), ParameterKind::Value) => misread(spec, parameter),
        (Argument::Value(_), _) => None,
        (Argument::Array { .. }, ParameterKind::Value | ParameterKind::Bytes) => {
            Some(format!("the parameter is a value of {bytes} bytes; give one such as f32:2.5"))
        }
        (Argument::Array { to, .. }, _) => {
            let access = parameter.pointers.first().map_or(Access::Unknown, |field| field.effect.access());
            match (access, to.is_some()) {
                (Access::Writes | Access::Both, false) => {
                    Some("the kernel writes it; declare it with inout: or out:".into())
                }
                (Access::Reads, true) => Some("the kernel only reads it; declare it with in:".into()),
                (Access::Neither, true) => {
                    Some("the kernel neither reads nor writes it; declare it with in:".into())
                }
                _ => None,
            }
        }
    }
}

/// Whether the kernel takes the bits of the value for something else.
fn misread(spec: &Spec, parameter: &Parameter) -> Option<String> {
    let Spec::Value { element, .. } = spec else { return None };
    let ty = parameter.ty;
    match ty.kind() {
        ScalarKind::Float if !element.is_float() => {
            Some(format!("the parameter is a floating-point number (.{})", ty.keyword()))
        }
        ScalarKind::Signed | ScalarKind::Unsigned if element.is_float() => {
            Some(format!("the parameter is an integer (.{})", ty.keyword()))
        }
        _ => None,
    }
}

impl ArgumentSheet {
    /// An argument with what is done through it, if it is an array.
    pub(super) fn of(
        index: usize,
        name: Option<String>,
        spec: &Spec,
        argument: &Argument,
        effect: Option<&'static str>,
    ) -> Self {
        let given = spec.to_string();
        match argument {
            Argument::Value(bytes) => {
                let element = match spec {
                    Spec::Value { element, .. } => element.to_string(),
                    _ => String::new(),
                };
                Self { index, name, given, effect: None, element, shape: None, bytes: bytes.len() as u64 }
            }
            Argument::Array { array, .. } => Self {
                index,
                name,
                given,
                effect,
                element: array.element.to_string(),
                shape: Some(array.shape.clone()),
                bytes: array.bytes.len() as u64,
            },
        }
    }
}
