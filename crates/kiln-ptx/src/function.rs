//! Entries and device functions.

use crate::body::Body;
use crate::call::Formal;
use crate::launch_bounds::LaunchBounds;
use crate::linkage::Linkage;
use crate::name::Name;
use crate::position::Origin;
use crate::register::Registers;

/// The number of a function within its module.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PtxFunctionId(pub u32);

impl PtxFunctionId {
    /// The number as an index.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// What a function is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FunctionKind {
    /// `.entry`: a kernel.
    Entry,
    /// `.func`: called from other functions.
    Device,
}

/// An entry or a device function.
///
/// A module may declare a function before it defines it, or never define it; one `Function` stands for all of that.
#[derive(Clone, Debug, PartialEq)]
pub struct PtxFunction {
    /// Its name.
    pub name: Name,
    /// Entry or device function.
    pub kind: FunctionKind,
    /// Who may see it.
    pub linkage: Option<Linkage>,
    /// Results, in order.
    pub returns: Vec<Formal>,
    /// Parameters, in order.
    pub parameters: Vec<Formal>,
    /// `.noreturn`.
    pub noreturn: bool,
    /// Launch bounds and other directives of its header.
    pub bounds: LaunchBounds,
    /// `.attribute(...)`, as written.
    pub attributes: Vec<Name>,
    /// All registers, also those of inner blocks.
    pub registers: Registers,
    /// For a name given by `.alias`: the function it stands for.
    pub alias: Option<PtxFunctionId>,
    /// The code; `None` when the module only declares the function.
    pub body: Option<Body>,
    /// Where it stood: its definition if there is one.
    pub origin: Origin,
}

impl PtxFunction {
    /// Whether it is a kernel.
    pub fn is_entry(&self) -> bool {
        self.kind == FunctionKind::Entry
    }

    /// Whether its linkage shows it outside the module.
    pub fn is_public(&self) -> bool {
        self.linkage.is_some_and(|linkage| linkage != Linkage::Extern)
    }
}
