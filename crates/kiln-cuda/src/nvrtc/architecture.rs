//! The target architecture of a compilation.

use std::fmt;
use std::str::FromStr;

use kiln_driver::Capability;

/// An architecture, such as 90 for capability 9.0.
///
/// ```
/// use kiln_cuda::nvrtc::Architecture;
/// use kiln_driver::Capability;
///
/// let hopper = Architecture::from(Capability { major: 9, minor: 0 });
/// assert_eq!(hopper.to_string(), "90");
/// assert_eq!(hopper.accelerated().to_string(), "90a");
/// assert_eq!("sm_90a".parse(), Ok(hopper.accelerated()));
/// assert_eq!("compute_100f".parse(), Ok(Architecture::new(100).family()));
/// assert!("sm_9O".parse::<Architecture>().is_err());
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Architecture {
    number: u32,
    features: Features,
}

/// Which instructions code may use besides those that all later architectures have.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
enum Features {
    Common,
    Family,
    Own,
}

/// A word that is no architecture.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("`{0}` is no architecture; write one such as sm_90, sm_90a or compute_100f")]
pub struct UnknownArchitectureName(String);

impl Architecture {
    /// From the number NVRTC uses.
    pub fn new(number: u32) -> Self {
        Self { number, features: Features::Common }
    }

    /// The same with instructions that only this architecture has; such code runs on no other.
    #[must_use]
    pub fn accelerated(self) -> Self {
        Self { features: Features::Own, ..self }
    }

    /// The same with instructions that the architectures of its family have; such code runs on no other.
    #[must_use]
    pub fn family(self) -> Self {
        Self { features: Features::Family, ..self }
    }

    /// The number NVRTC uses.
    pub fn number(self) -> u32 {
        self.number
    }
}

impl From<Capability> for Architecture {
    fn from(capability: Capability) -> Self {
        Self::new(capability.major * 10 + capability.minor)
    }
}

impl fmt::Display for Architecture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let suffix = match self.features {
            Features::Common => "",
            Features::Family => "f",
            Features::Own => "a",
        };
        write!(f, "{}{suffix}", self.number)
    }
}

impl FromStr for Architecture {
    type Err = UnknownArchitectureName;

    /// Reads `sm_90a`, `compute_90a` or `90a`.
    fn from_str(text: &str) -> Result<Self, UnknownArchitectureName> {
        let unknown = || UnknownArchitectureName(text.to_owned());
        let name = text.strip_prefix("sm_").or_else(|| text.strip_prefix("compute_")).unwrap_or(text);
        let digits = name.trim_end_matches(['a', 'f']);
        if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(unknown());
        }
        let plain = Self::new(digits.parse().map_err(|_| unknown())?);
        match name.strip_prefix(digits) {
            Some("") => Ok(plain),
            Some("a") => Ok(plain.accelerated()),
            Some("f") => Ok(plain.family()),
            _ => Err(unknown()),
        }
    }
}
