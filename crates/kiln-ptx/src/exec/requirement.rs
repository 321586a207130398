//! What an instruction requires of its module: the first version of the PTX ISA and the first architecture that have it.

use std::fmt;

use super::matrix::{SparseMultiply, WarpMatrix};
use crate::{Flag, Form, Opcode, Order, PtxModule, PtxVersion, Rounding, ScalarType, Scope, Space};

/// Words of tensor copies that came with sm_100.
const BLACKWELL_WORDS: [&str; 3] = ["tile::gather4", "tile::scatter4", "cta_group::1"];

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
    /// This one and others up to `sm`, under names with an `a` or `f`.
    Family {
        last: u32,
    },
    /// This one and another one, each under its name with an `a`.
    OwnOfTwo {
        other: u32,
    },
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

    /// What the architectures from sm_100 to sm_110 have under names with an `a` or `f`, since version 8.6.
    const BLACKWELL: Self = Self {
        version: PtxVersion { major: 8, minor: 6 },
        sm: 100,
        features: Features::Family { last: 110 },
    };

    /// What the architectures from sm_100 to sm_121 have under names with an `a` or `f`, since version 8.6.
    const SMALL_FLOATS: Self = Self { features: Features::Family { last: 121 }, ..Self::BLACKWELL };

    /// What sm_100a and sm_103a have since version 8.7.
    const RANDOM_ROUNDING: Self = Self {
        version: PtxVersion { major: 8, minor: 7 },
        sm: 100,
        features: Features::OwnOfTwo { other: 103 },
    };

    /// What a conversion requires.
    fn of_conversion(form: &Form) -> Option<Self> {
        use ScalarType::{E2m1x2, E2m3x2, E3m2x2, Ue8m0x2};
        if form.rounding() == Some(Rounding::Rs) {
            return Some(Self::RANDOM_ROUNDING);
        }
        let is_small = |ty| matches!(ty, E2m1x2 | E2m3x2 | E3m2x2 | Ue8m0x2);
        form.types().any(is_small).then_some(Self::SMALL_FLOATS)
    }

    /// What an instruction requires; `None` where nothing is known.
    pub(crate) fn of(form: &Form) -> Option<Self> {
        match form.opcode() {
            Opcode::Wmma => WarpMatrix::named(form.text()).map(|matrix| matrix.requirement()),
            Opcode::Mma => SparseMultiply::named(form.text()).map(|sparse| sparse.requirement()),
            Opcode::Wgmma => Some(Self::own(8, 0, 90)),
            Opcode::Cvt => Self::of_conversion(form),
            Opcode::Mbarrier => Some(Self::of_mbarrier(form)),
            Opcode::Atom | Opcode::Red if form.vector() > 1 => Some(Self::new(8, 1, 90)),
            Opcode::Cp if form.has_word("tile::gather4") && is_own_block(form) => {
                Some(if form.has_word("cta_group::1") { Self::BLACKWELL } else { Self::new(8, 6, 100) })
            }
            Opcode::Cp if BLACKWELL_WORDS.iter().any(|word| form.has_word(word)) => Some(Self::BLACKWELL),
            Opcode::Cp if form.has(Flag::Bulk) => Some(Self::new(8, 0, 90)),
            Opcode::Cp if form.has(Flag::Mbarrier) => Some(Self::new(7, 0, 80)),
            Opcode::Cp if form.has(Flag::Async) => Some(Self::new(7, 0, 80)),
            Opcode::Redux if form.ty() != Some(ScalarType::F32) => Some(Self::new(7, 0, 80)),
            Opcode::Match => Some(Self::new(6, 0, 70)),
            Opcode::Elect | Opcode::Stmatrix | Opcode::Griddepcontrol => Some(Self::new(7, 8, 90)),
            Opcode::Movmatrix => Some(Self::new(7, 8, 75)),
            Opcode::Ldmatrix => Some(Self::new(6, 5, 75)),
            Opcode::Fma if matches!(form.ty(), Some(ScalarType::Bf16 | ScalarType::Bf16x2)) => {
                Some(Self::new(7, 0, 80))
            }
            Opcode::Mapa | Opcode::Getctarank => Some(Self::new(7, 8, 90)),
            Opcode::Barrier if form.scope() == Some(Scope::Cluster) => Some(Self::new(7, 8, 90)),
            Opcode::St | Opcode::Red if form.has(Flag::Async) => Some(Self::new(8, 1, 90)),
            Opcode::Tensormap => Some(Self::new(8, 3, 90)),
            Opcode::Fence if form.has_word("tensormap::generic") => Some(Self::new(8, 3, 90)),
            Opcode::Fence if form.has(Flag::MbarrierInit) => Some(Self::new(8, 0, 90)),
            Opcode::Fence if form.has_word("async::generic") => Some(Self::new(8, 6, 90)),
            Opcode::Fence if form.has(Flag::Proxy) && form.has_word("alias") => Some(Self::new(7, 5, 70)),
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
            (Some(sm), Features::Family { last }) => {
                (self.sm..=last).contains(&sm) && module.target.architecture.ends_with(['a', 'f'])
            }
            (Some(sm), Features::Own) => sm == self.sm && module.target.architecture.ends_with('a'),
            (Some(sm), Features::OwnOfTwo { other }) => {
                [self.sm, other].contains(&sm) && module.target.architecture.ends_with('a')
            }
        };
        has_architecture && module.version >= self.version
    }
}

/// Whether a copy goes to the block's own shared memory.
fn is_own_block(form: &Form) -> bool {
    !form.has(Flag::Prefetch) && form.space().map(Space::base) == Some(Space::Shared)
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { version, sm, features } = self;
        write!(f, "PTX {}.{} and ", version.major, version.minor)?;
        match features {
            Features::All => write!(f, "sm_{sm} or newer"),
            Features::Own => write!(f, "sm_{sm}a"),
            Features::Family { last } => write!(f, "sm_{sm}a to sm_{last}a"),
            Features::OwnOfTwo { other } => write!(f, "sm_{sm}a or sm_{other}a"),
        }
    }
}
