//! Values of variables of a module, copied to them before the launch.

use std::fmt;

use kiln::Kernel;
use serde::Serialize;

use super::loaded_arguments::Argument;
use crate::argument_spec::Spec;
use crate::constant_spec::ConstantSpec;
use crate::declared_variable::DeclaredVariable;
use crate::demangled_name::readable;
use crate::failure::Failure;
use crate::npy::Array;
use crate::plural::counted;

/// The value of a variable, read from its file.
#[derive(Clone, Debug)]
pub(crate) struct Constant {
    name: String,
    given: String,
    /// Whether its elements are floats, where it has elements.
    is_float: Option<bool>,
    bytes: Vec<u8>,
}

/// A variable that was given a value, as reports list it.
#[derive(Clone, Serialize, Debug)]
pub(crate) struct ConstantSheet {
    name: String,
    given: String,
    bytes: u64,
}

impl Constant {
    /// Reads the value, from its file if it has one.
    pub(crate) fn read(constant: &ConstantSpec) -> Result<Self, Failure> {
        let ConstantSpec { name, spec } = constant;
        let (is_float, bytes) = match spec {
            Spec::In { from } => {
                let array = Array::read(from).map_err(|error| Failure::file(from, error))?;
                (Some(array.element.is_float()), array.bytes)
            }
            Spec::Value { element, bytes, .. } => (Some(element.is_float()), bytes.clone()),
            other => match Argument::read(other)? {
                Argument::Value(bytes) | Argument::Struct { bytes, .. } => (None, bytes),
                _ => {
                    return Err(Failure::usage(format!(
                        "--const {name}={other}: it is no content of a variable"
                    )));
                }
            },
        };
        Ok(Self { name: name.clone(), given: spec.to_string(), is_float, bytes })
    }

    /// Copies it to the variable of the kernel's module.
    ///
    /// # Errors
    /// No such variable, another size, or an integer where it is a float.
    pub(crate) fn copy_to(&self, kernel: &Kernel, declared: &[DeclaredVariable]) -> Result<(), Failure> {
        let variable = self.variable(declared)?;
        let refused = |why: String| Failure::refused(format!("--const {}={}: {why}", self.name, self.given));
        let given = self.bytes.len() as u64;
        if given != variable.bytes {
            let why = format!("the variable has {} bytes, and {given} are given", variable.bytes);
            return Err(refused(why).next("give all of its bytes, with the type it is declared with"));
        }
        if let (Some(declared), Some(given)) = (variable.is_float(), self.is_float)
            && declared != given
        {
            let words = |is_float| if is_float { "a float" } else { "an integer" };
            let why = format!("the variable is {}, and {} is given", words(declared), words(given));
            return Err(refused(why).next("give the type it is declared with, or its bytes as bytes:HEX"));
        }
        // Arrays of bytes have no kind of number, which was compared above.
        let bytes: Vec<[u8; 1]> = self.bytes.iter().map(|byte| [*byte]).collect();
        kernel.module().global::<[u8; 1]>(&variable.name)?.upload(&bytes)?;
        Ok(())
    }

    /// The variable of that name, as in the source or as in PTX.
    fn variable<'v>(&self, declared: &'v [DeclaredVariable]) -> Result<&'v DeclaredVariable, Failure> {
        let is_meant = |it: &&DeclaredVariable| it.name == self.name || readable(&it.name) == self.name;
        let found: Vec<_> = declared.iter().filter(is_meant).collect();
        let names = |list: &[&DeclaredVariable]| -> String {
            list.iter().map(|it| format!("`{}`", readable(&it.name))).collect::<Vec<_>>().join(", ")
        };
        match &found[..] {
            [only] => Ok(only),
            [] => {
                let failure =
                    Failure::refused(format!("--const {}: the file has no variable of that name", self.name));
                let all: Vec<_> = declared.iter().collect();
                Err(match all.is_empty() {
                    true => failure.next("it declares no `__constant__` or `__device__` variable"),
                    false => failure.next(format!("it has {}", names(&all))),
                })
            }
            several => {
                let names: Vec<_> = several.iter().map(|it| it.name.as_str()).collect();
                let failure =
                    Failure::refused(format!("--const {}: several variables have that name", self.name));
                Err(failure.next(format!("give the name in PTX: {}", names.join(", "))))
            }
        }
    }

    pub(crate) fn sheet(&self) -> ConstantSheet {
        ConstantSheet { name: self.name.clone(), given: self.given.clone(), bytes: self.bytes.len() as u64 }
    }
}

impl fmt::Display for ConstantSheet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} = {} ({})", self.name, self.given, counted(self.bytes, "byte"))
    }
}
