//! What an instruction requires of its module: the first version of the PTX ISA and the first architecture that have it.

use std::fmt;

use super::matrix::{SparseMultiply, WarpMatrix};
use crate::{Flag, Form, Opcode, Order, PtxModule, PtxVersion, Scope, Space};

/// The first version and architecture that have an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Requirement {
    version: PtxVersion,
    sm: u32,
    features: Features,
}

/// Whether later architectures have it too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Features {
    All,
    /// This one alone.
    Own,
}

impl Requirement {
    /// What architectures from `sm` on have since version `major.minor`.
    pub(crate) const fn new(major: u32, minor: u32, sm: u32) -> Self {
        Self { version: PtxVersion { major, minor }, sm, features: Features::All }
    }

    /// What one architecture alone has since version `major.minor`, under its own name with an `a`.
    const fn own(major: u32, minor: u32, sm: u32) -> Self {
        Self { version: PtxVersion { major, minor }, sm, features: Features::Own }
    }

    /// What an instruction requires; `None` where nothing is known.
    pub(crate) fn of(form: &Form) -> Option<Self> {
        match form.opcode() {
            Opcode::Wmma => WarpMatrix::named(form.text()).map(|matrix| matrix.requirement()),
            Opcode::Mma => SparseMultiply::named(form.text()).map(|sparse| sparse.requirement()),
            Opcode::Wgmma => Some(Self::own(8, 0, 90)),
            Opcode::Mbarrier => Some(Self::of_mbarrier(form)),
            Opcode::Atom | Opcode::Red if form.vector() > 1 => Some(Self::new(8, 1, 90)),
            Opcode::Cp if form.has(Flag::Bulk) => Some(Self::new(8, 0, 90)),
            Opcode::Cp if form.has(Flag::Mbarrier) => Some(Self::new(7, 0, 80)),
            Opcode::Mapa | Opcode::Getctarank => Some(Self::new(7, 8, 90)),
            Opcode::Barrier if form.scope() == Some(Scope::Cluster) => Some(Self::new(7, 8, 90)),
            Opcode::St | Opcode::Red if form.has(Flag::Async) => Some(Self::new(8, 1, 90)),
            Opcode::Tensormap => Some(Self::new(8, 3, 90)),
            Opcode::Fence if form.has_word("tensormap::generic") => Some(Self::new(8, 3, 90)),
            Opcode::Fence if form.has(Flag::MbarrierInit) => Some(Self::new(8, 0, 90)),
            Opcode::Fence if form.has(Flag::Proxy) && form.has(Flag::Async) => Some(Self::new(8, 0, 90)),
            _ if form.spaces().any(|space| space == Space::SharedCluster) => Some(Self::new(7, 8, 90)),
            _ => None,
        }
    }

    fn of_mbarrier(form: &Form) -> Self {
        let has_bytes = form.has(Flag::ExpectTx) || form.has(Flag::CompleteTx);
        if has_bytes || form.order() == Some(Order::Relaxed) || form.scope() == Some(Scope::Cluster) {
            Self::new(8, 0, 90)
        } else if form.has(Flag::TryWait) {
            Self::new(7, 8, 90)
        } else if form.has(Flag::Parity) {
            Self::new(7, 1, 80)
        } else {
            Self::new(7, 0, 80)
        }
    }

    /// Whether a module may use it.
    pub(crate) fn is_met_by(&self, module: &PtxModule) -> bool {
        let has_architecture = match (module.target.sm(), self.features) {
            (None, _) => true,
            (Some(sm), Features::All) => sm >= self.sm,
            (Some(sm), Features::Own) => sm == self.sm && module.target.architecture.ends_with('a'),
        };
        has_architecture && module.version >= self.version
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { version, sm, features } = self;
        write!(f, "PTX {}.{} and ", version.major, version.minor)?;
        match features {
            Features::All => write!(f, "sm_{sm} or newer"),
            Features::Own => write!(f, "sm_{sm}a"),
        }
    }
}
