//! `Policy`: no device, a GPU if there is one, a required GPU, or the simulated device.

use std::fmt;
use std::str::FromStr;

/// Whether a GPU is wanted.
///
/// ```
/// use kiln::Policy;
///
/// assert_eq!("required".parse::<Policy>()?, Policy::Required);
/// assert_eq!(Policy::default(), Policy::Auto);
/// assert!("maybe".parse::<Policy>().is_err());
/// # Ok::<(), kiln::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Policy {
    /// Leave CUDA alone: not even its library is looked for.
    Off,
    /// Use a GPU where there is one. A machine without is fine; one whose GPU does not work is an error.
    #[default]
    Auto,
    /// A machine without a usable GPU is an error.
    Required,
    /// Use the simulated device and leave CUDA alone.
    Simulate,
}

impl Policy {
    /// All of them, in the order of the documentation.
    pub const ALL: [Self; 4] = [Self::Off, Self::Auto, Self::Required, Self::Simulate];

    /// The word used in the environment and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Auto => "auto",
            Self::Required => "required",
            Self::Simulate => "simulate",
        }
    }

    /// Whether CUDA may be looked for.
    pub fn may_touch_cuda(self) -> bool {
        matches!(self, Self::Auto | Self::Required)
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Text that names no policy.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("`{text}` is no policy; write one of off, auto, required, simulate")]
pub struct UnknownPolicy {
    /// The text.
    pub text: String,
}

impl FromStr for Policy {
    type Err = UnknownPolicy;

    fn from_str(text: &str) -> Result<Self, UnknownPolicy> {
        let wanted = text.trim();
        Self::ALL
            .into_iter()
            .find(|policy| policy.name().eq_ignore_ascii_case(wanted))
            .ok_or_else(|| UnknownPolicy { text: text.into() })
    }
}
