//! Variables of a module: `__device__` and `__constant__` memory, by name.
//!
//! A launch does not say which variables its kernel uses. So every launch of a kernel counts as a use of those variables of its module that were
//! asked for: a read of `__constant__` memory, a read and a write of `__device__` memory. A module whose variables were not asked for is not
//! affected.
//!
//! The list only grows, and launches read it without a lock.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use kiln_driver::{Access, Image};
use kiln_ptx::{ScalarType, Space};

use crate::buffer::{BlockRange, Element};
use crate::error::CodeError;
use crate::runtime::{Block, Inner};
use crate::signature::Number;

/// The variables of one module.
#[derive(Default)]
pub(super) struct ModuleVariables {
    /// What the PTX declares; none where there is no PTX to read.
    declared: Option<Vec<Declared>>,
    first: OnceLock<Box<Variable>>,
    /// Held while one is added.
    adding: Mutex<()>,
}

/// A variable as PTX declares it.
struct Declared {
    name: String,
    is_constant: bool,
    number: Number,
}

/// A variable that was asked for.
pub(super) struct Variable {
    name: String,
    pub(super) held: BlockRange,
    /// How a kernel of the module may use it.
    pub(super) access: Access,
    next: OnceLock<Box<Variable>>,
}

impl ModuleVariables {
    /// The variables of an image, as far as PTX tells; none if it has none for sure.
    pub(super) fn of(image: &Image<'_>, ptx: Option<&str>) -> Option<Self> {
        match (image.ptx().or(ptx), image) {
            (Some(ptx), _) if !kiln_ptx::declares_variables(ptx) => None,
            (Some(ptx), _) => Some(Self { declared: declared(ptx), ..Self::default() }),
            (None, Image::HostKernels(_) | Image::Library(_) | Image::Communicator(_)) => None,
            (None, _) => Some(Self::default()),
        }
    }

    /// Those that were asked for, in that order.
    pub(super) fn iter<'v>(&'v self) -> impl Iterator<Item = &'v Variable> {
        let first: Option<&'v Variable> = self.first.get().map(Box::as_ref);
        std::iter::successors(first, |variable| variable.next.get().map(Box::as_ref))
    }

    /// The memory of one that was asked for before and that the device still has.
    pub(super) fn find(&self, name: &str, runtime: &Inner) -> Option<&BlockRange> {
        let is_there = |variable: &&Variable| {
            variable.name == name && variable.held.block().check_runtime(runtime).is_ok()
        };
        self.iter().find(is_there).map(|variable| &variable.held)
    }

    /// Adds one, unless another thread was faster. Returns the one that is there.
    pub(super) fn add(&self, name: &str, block: Arc<Block>, runtime: &Inner) -> BlockRange {
        let _adding = self.adding.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(held) = self.find(name, runtime) {
            return held.clone();
        }
        let is_constant = self.declared(name).is_some_and(|declared| declared.is_constant);
        let access = if is_constant { Access::Read } else { Access::ReadWrite };
        let held = BlockRange::whole(block);
        let variable = Variable { name: name.to_owned(), held: held.clone(), access, next: OnceLock::new() };
        let end = self.iter().last().map_or(&self.first, |last| &last.next);
        // It is empty: nothing is added without the lock.
        let _ = end.set(Box::new(variable));
        held
    }

    /// Refuses elements that the variable does not consist of, as far as that is known.
    pub(super) fn check<T: Element>(&self, name: &str, bytes: u64) -> Result<(), CodeError> {
        let element_bytes = size_of::<T>() as u64;
        if element_bytes == 0 || !bytes.is_multiple_of(element_bytes) {
            return Err(CodeError::VariableSize { name: name.to_owned(), bytes, element_bytes });
        }
        let declared = self.declared(name).map_or(Number::Unknown, |declared| declared.number);
        if declared.contradicts(Number::of::<T>()) {
            let given = Number::of::<T>();
            return Err(CodeError::VariableNumber { name: name.to_owned(), declared, given });
        }
        Ok(())
    }

    /// The names that the PTX declares.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.declared.iter().flatten().map(|declared| declared.name.as_str())
    }

    fn declared(&self, name: &str) -> Option<&Declared> {
        self.declared.iter().flatten().find(|declared| declared.name == name)
    }
}

/// The variables that PTX declares for the whole module.
fn declared(ptx: &str) -> Option<Vec<Declared>> {
    let module = kiln_ptx::PtxModule::parse(ptx).ok()?;
    let declared = |variable: &kiln_ptx::PtxVariable| Declared {
        name: variable.name.to_string(),
        is_constant: variable.space == Space::Const,
        number: number(variable.shape.ty),
    };
    let variables = module.module_variables().map(|(_, variable)| variable);
    let shared = variables.filter(|variable| matches!(variable.space, Space::Global | Space::Const));
    Some(shared.map(declared).collect())
}

/// What the bits of a variable mean. Compilers write arrays and structs as bytes, which may be anything.
fn number(ty: ScalarType) -> Number {
    use ScalarType::{F32, F64, S16, S32, S64, U16, U32, U64};
    match ty {
        U16 | U32 | U64 | S16 | S32 | S64 => Number::Whole,
        F32 | F64 => Number::Float,
        _ => Number::Unknown,
    }
}
