//! Which device a command runs on.

use clap::ValueEnum;
use kiln::recovery::Backend;
use kiln::{DeviceRuntime, Policy, probe::Availability};

/// What was asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Where {
    /// A GPU if there is one, else the simulated device.
    Auto,
    /// A GPU.
    Cuda,
    /// The simulated device.
    Sim,
}

/// What it led to, and why.
pub(crate) struct Choice {
    /// The runtime of a GPU; none for a simulated device, which every command builds as it needs it.
    pub(crate) gpu: Option<&'static DeviceRuntime>,
    /// Why it is this device and no other.
    pub(crate) reason: String,
}

impl Where {
    /// Names a device for a worker process to open, without opening it here; and why it is this one.
    ///
    /// # Errors
    /// As for [`choose`](Self::choose).
    pub(crate) fn backend(self, seed: u64) -> kiln::Result<(Backend, String)> {
        let simulated = |reason: String| (Backend::simulated(seed), reason);
        let policy = if self == Self::Cuda { Policy::Required } else { kiln::probe::policy()? };
        if self == Self::Sim {
            return Ok(simulated("as asked".into()));
        }
        match kiln::probe::prober().availability_under(policy)? {
            Availability::Absent(absence) if policy == Policy::Required => Err(absence.into()),
            Availability::Absent(absence) => {
                Ok(simulated(format!("no CUDA device is used: {}; kiln doctor says more", absence.name())))
            }
            _ if policy == Policy::Simulate => Ok(simulated("the policy says so".into())),
            Availability::Available(devices) => {
                let ordinal = devices.working().next().map_or(0, |device| device.ordinal);
                Ok((Backend::cuda(ordinal), "a GPU was found".into()))
            }
        }
    }

    /// Picks a device.
    ///
    /// # Errors
    /// There is none of the kind that was asked for; or it does not work.
    pub(crate) fn choose(self) -> kiln::Result<Choice> {
        let simulated = |reason: String| Choice { gpu: None, reason };
        match self {
            Self::Sim => Ok(simulated("as asked".into())),
            Self::Cuda => Ok(Choice { gpu: Some(kiln::probe::require()?), reason: "as asked".into() }),
            Self::Auto => {
                let policy = kiln::probe::policy()?;
                match kiln::probe::prober().availability_under(policy)? {
                    Availability::Absent(absence) if policy != Policy::Required => Ok(simulated(format!(
                        "no CUDA device is used: {}; kiln doctor says more",
                        absence.name()
                    ))),
                    _ if policy == Policy::Simulate => Ok(simulated("the policy says so".into())),
                    _ => Ok(Choice { gpu: Some(kiln::probe::require()?), reason: "a GPU was found".into() }),
                }
            }
        }
    }
}
