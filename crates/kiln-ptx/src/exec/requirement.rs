//! What an instruction requires of its module: the first version of the PTX ISA and the first architecture that have it.

use std::fmt;

use crate::{PtxModule, PtxVersion};

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
    pub(super) const fn own(major: u32, minor: u32, sm: u32) -> Self {
        Self { version: PtxVersion { major, minor }, sm, features: Features::Own }
    }

    /// What the architectures from sm_100 to sm_110 have under names with an `a` or `f`, since version 8.6.
    pub(super) const BLACKWELL: Self = Self {
        version: PtxVersion { major: 8, minor: 6 },
        sm: 100,
        features: Features::Family { last: 110 },
    };

    /// What the architectures from sm_100 to sm_121 have under names with an `a` or `f`, since version 8.6.
    pub(super) const SMALL_FLOATS: Self =
        Self { features: Features::Family { last: 121 }, ..Self::BLACKWELL };

    /// What sm_100a and sm_103a have since version 8.7.
    pub(super) const RANDOM_ROUNDING: Self = Self {
        version: PtxVersion { major: 8, minor: 7 },
        sm: 100,
        features: Features::OwnOfTwo { other: 103 },
    };

    /// What the architectures from `sm` to sm_121 have under names with an `a` or `f`, since version `major.minor`.
    pub(super) const fn suffixed(major: u32, minor: u32, sm: u32) -> Self {
        Self { version: PtxVersion { major, minor }, sm, features: Features::Family { last: 121 } }
    }

    /// What both require: the later version, and the architectures of the one that leaves fewer.
    pub(super) fn and(self, other: Self) -> Self {
        let narrower = match (self.features, other.features) {
            (Features::All, Features::All) if other.sm > self.sm => other,
            (Features::All, Features::All) => self,
            (Features::All, _) => other,
            _ => self,
        };
        Self { version: self.version.max(other.version), ..narrower }
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
