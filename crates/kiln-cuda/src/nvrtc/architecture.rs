//! The target architecture of a compilation.

use std::fmt;

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
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Architecture {
    number: u32,
    accelerated: bool,
}

impl Architecture {
    /// From the number NVRTC uses.
    pub fn new(number: u32) -> Self {
        Self { number, accelerated: false }
    }

    /// The same with instructions that only this architecture has; such code runs on no other.
    #[must_use]
    pub fn accelerated(self) -> Self {
        Self { accelerated: true, ..self }
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
        write!(f, "{}{}", self.number, if self.accelerated { "a" } else { "" })
    }
}
