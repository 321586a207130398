//! The arguments of a launch, read from their files.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use kiln_driver::Access;
use kiln_ptx::exec::TextureObject;
use serde::Serialize;

use super::constants::Constant;
use crate::argument_spec::{Spec, Start, struct_layout};
use crate::constant_spec::ConstantSpec;
use crate::failure::Failure;
use crate::npy::Array;

/// The arguments of a launch, in order. Arrays are shared, so that a plan is cheap to copy.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) arguments: Vec<Argument>,
    /// Values of variables of the module.
    pub(crate) constants: Vec<Constant>,
}

/// One argument.
#[derive(Clone, Debug)]
pub(crate) enum Argument {
    /// Bytes by value.
    Value(Vec<u8>),
    /// A null pointer.
    Null,
    /// A pointer to an array.
    Array(ArrayArgument),
    /// A struct by value: its bytes, and the arrays whose addresses go into it, by offset.
    Struct { bytes: Vec<u8>, arrays: Vec<(u64, ArrayArgument)> },
    /// The handle of a texture or surface: its texels, and its object without their address.
    Texture { texels: ArrayArgument, object: TextureObject },
}

/// An array on its way to the device.
#[derive(Clone, Debug)]
pub(crate) struct ArrayArgument {
    pub(crate) array: Arc<Array>,
    /// What is declared of it.
    pub(crate) access: Access,
    /// Where it goes afterwards; an array that was made for the launch may go nowhere.
    pub(crate) to: Option<PathBuf>,
    /// What it holds at first, if it was made for the launch and not read from a file.
    pub(crate) start: Option<Start>,
    /// The widest access of the kernel to it in bytes, where that is known.
    pub(crate) widest_access: Option<u64>,
}

/// An argument as reports list it.
#[derive(Clone, Serialize, Debug)]
pub(crate) struct ArgumentSheet {
    pub(crate) index: usize,
    /// Its name in a program.
    pub(crate) name: Option<String>,
    pub(crate) given: String,
    /// What the kernel does with it, for arrays.
    pub(crate) effect: Option<&'static str>,
    pub(crate) element: String,
    /// For arrays.
    pub(crate) shape: Option<Vec<u64>>,
    pub(crate) bytes: u64,
}

impl Plan {
    /// Reads the files of the arguments of a kernel in the file `source`, which no argument may replace, and those of variables.
    pub(crate) fn read(specs: &[Spec], constants: &[ConstantSpec], source: &Path) -> Result<Self, Failure> {
        let mut outputs: Vec<PathBuf> = Vec::new();
        let source = resolved(source);
        let outputs_by_argument = specs
            .iter()
            .enumerate()
            .flat_map(|(at, spec)| spec.outputs().into_iter().map(move |path| (at, path)));
        for (argument, path) in outputs_by_argument {
            check_folder(path)?;
            check_file(path)?;
            let resolved = resolved(path);
            if resolved == source {
                let failure =
                    Failure::file(path, "it is the file of the kernel, and an array would take its place");
                return Err(failure.next("name another file for the array"));
            }
            if outputs.contains(&resolved) {
                return Err(Failure::file(path, "two arguments would be written to it"));
            }
            let is_read = |spec: &Spec| spec.inputs().iter().any(|from| self::resolved(from) == resolved);
            let reads = |(at, spec): (usize, &Spec)| (at != argument && is_read(spec)).then_some(at);
            if let Some(reader) = specs.iter().enumerate().find_map(reads) {
                let message =
                    format!("argument {reader} is read from it, and argument {argument} would replace it");
                return Err(Failure::file(path, message).next("name another file for the output"));
            }
            if constants.iter().any(|constant| is_read(&constant.spec)) {
                let message = format!("a variable is read from it, and argument {argument} would replace it");
                return Err(Failure::file(path, message).next("name another file for the output"));
            }
            outputs.push(resolved);
        }
        let arguments = specs.iter().map(Argument::read).collect::<Result<_, _>>()?;
        for (at, constant) in constants.iter().enumerate() {
            if constants.iter().take(at).any(|earlier| earlier.name == constant.name) {
                let message = format!("--const {}: two contents are given for this variable", constant.name);
                return Err(Failure::usage(message).next("give one of them"));
            }
        }
        let constants = constants.iter().map(Constant::read).collect::<Result<_, _>>()?;
        Ok(Self { arguments, constants })
    }
}

impl Argument {
    pub(super) fn read(spec: &Spec) -> Result<Self, Failure> {
        Ok(match spec {
            Spec::Null => Self::Null,
            Spec::Value { bytes, .. } | Spec::Bytes(bytes) => Self::Value(bytes.clone()),
            Spec::Struct(fields) => {
                let mut bytes = vec![0; usize::try_from(spec.layout().bytes).unwrap_or(0)];
                let mut arrays = Vec::new();
                lay_out(fields, 0, &mut bytes, &mut arrays)?;
                Self::Struct { bytes, arrays }
            }
            Spec::Texture { texture, .. } | Spec::Surface { texture, .. } => {
                let texels = ArrayArgument::read(spec)?;
                let object = texture.object(texels.array.element, &texels.array.shape);
                let object = object.map_err(|why| Failure::usage(format!("{spec}: {why}")))?;
                Self::Texture { texels, object }
            }
            array => Self::Array(ArrayArgument::read(array)?),
        })
    }

    /// The arrays it refers to.
    pub(crate) fn arrays(&self) -> Vec<&ArrayArgument> {
        match self {
            Self::Array(array) | Self::Texture { texels: array, .. } => vec![array],
            Self::Struct { arrays, .. } => arrays.iter().map(|(_, array)| array).collect(),
            Self::Value(_) | Self::Null => Vec::new(),
        }
    }
}

/// Puts the fields of a struct where C puts them.
fn lay_out(
    fields: &[Spec],
    base: u64,
    bytes: &mut [u8],
    arrays: &mut Vec<(u64, ArrayArgument)>,
) -> Result<(), Failure> {
    let (offsets, _) = struct_layout(fields);
    for (field, offset) in fields.iter().zip(offsets) {
        let offset = base + offset;
        match field {
            Spec::Struct(inner) => lay_out(inner, offset, bytes, arrays)?,
            Spec::Value { bytes: value, .. } | Spec::Bytes(value) => {
                let places = bytes.iter_mut().skip(usize::try_from(offset).unwrap_or(usize::MAX));
                places.zip(value).for_each(|(place, byte)| *place = *byte);
            }
            Spec::Null => {}
            array => arrays.push((offset, ArrayArgument::read(array)?)),
        }
    }
    Ok(())
}

impl ArrayArgument {
    /// Whether the kernel is meant to write it.
    pub(crate) fn is_written(&self) -> bool {
        self.access.writes()
    }

    /// Whether the caller reads it when the launch is over. An array of a file that is only read is no output, and scratch memory is none.
    pub(crate) fn is_output(&self) -> bool {
        match self.start {
            Some(start) => start != Start::Scratch,
            None => self.is_written(),
        }
    }

    fn read(spec: &Spec) -> Result<Self, Failure> {
        let load = |path: &Path| -> Result<Array, Failure> {
            Array::read(path).map_err(|error| Failure::file(path, error))
        };
        let (array, access, to) = match spec {
            Spec::In { from } | Spec::Texture { from, .. } => (load(from)?, Access::Read, None),
            Spec::InOut { from, to } | Spec::Surface { from, to, .. } => {
                (load(from)?, Access::ReadWrite, to.as_ref())
            }
            Spec::Out { element, len, to, .. } => {
                let zeros = Array::zeros(*element, *len).ok_or_else(|| {
                    Failure::usage(format!("{spec}: this machine does not have so much memory"))
                })?;
                // The kernel may read what it wrote, and zeros.
                (zeros, Access::ReadWrite, to.as_ref())
            }
            other => return Err(Failure::usage(format!("{other} is not an array"))),
        };
        let start = match spec {
            Spec::Out { start, .. } => Some(*start),
            _ => None,
        };
        Ok(Self { array: Arc::new(array), access, to: to.cloned(), start, widest_access: None })
    }
}

/// Refuses to put a file in the place of a device, a pipe or a folder.
fn check_file(path: &Path) -> Result<(), Failure> {
    match std::fs::metadata(path) {
        Ok(found) if !found.is_file() => {
            let failure = Failure::file(path, "it is not a regular file, and an array would take its place");
            Err(failure.next("name a file that does not exist, or one that may be overwritten"))
        }
        _ => Ok(()),
    }
}

/// The file behind links and `.`, so that two names of one file are the same.
fn resolved(path: &Path) -> PathBuf {
    let in_folder = || {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        Some(folder.canonicalize().ok()?.join(path.file_name()?))
    };
    path.canonicalize().ok().or_else(in_folder).unwrap_or_else(|| path.to_owned())
}

/// Refuses an output that cannot be written, before anything runs.
fn check_folder(path: &Path) -> Result<(), Failure> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if path.file_name().is_none() || path.is_dir() {
        return Err(Failure::file(path, "it is a folder and not the name of a file"));
    }
    if folder.is_dir() {
        Ok(())
    } else {
        Err(Failure::file(path, "its folder does not exist").next("create it"))
    }
}

impl ArgumentSheet {
    /// An argument, and what is done with it if it is an array.
    pub(super) fn of(
        index: usize,
        name: Option<String>,
        spec: &Spec,
        argument: &Argument,
        effect: Option<&'static str>,
    ) -> Self {
        let given = spec.to_string();
        let (effect, element, shape, bytes) = match argument {
            Argument::Array(ArrayArgument { array, .. }) => {
                (effect, array.element.to_string(), Some(array.shape.clone()), array.bytes.len() as u64)
            }
            Argument::Texture { texels: ArrayArgument { array, access, .. }, .. } => {
                let effect = if access.writes() { "accesses" } else { "reads" };
                (Some(effect), array.element.to_string(), Some(array.shape.clone()), array.bytes.len() as u64)
            }
            Argument::Value(bytes) => {
                let element = match spec {
                    Spec::Value { element, .. } => element.to_string(),
                    _ => String::new(),
                };
                (None, element, None, bytes.len() as u64)
            }
            Argument::Null => (None, String::new(), None, 8),
            Argument::Struct { bytes, .. } => (None, "struct".to_owned(), None, bytes.len() as u64),
        };
        Self { index, name, given, effect, element, shape, bytes }
    }
}
