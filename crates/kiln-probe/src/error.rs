//! What finding or opening a device can answer.

use std::sync::Arc;

use kiln_driver::DeviceKind;

use crate::absence_reason::Absence;
use crate::gpu_policy::{Policy, UnknownPolicy};

/// The answer of most calls here.
pub type Result<T> = std::result::Result<T, ProbeError>;

/// Why a device could not be found or opened.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProbeError {
    /// The device said no.
    #[error(transparent)]
    Driver(#[from] kiln_driver::Error),
    /// There is no device, and one was needed.
    #[error("no CUDA runtime available")]
    Absent(#[from] Absence),
    /// The platform is there and does not work.
    #[error("{kind} devices cannot be listed")]
    Listing {
        /// Whose devices.
        kind: DeviceKind,
        /// What went wrong.
        #[source]
        cause: kiln_driver::Error,
    },
    /// A device that is listed could not be opened.
    #[error("{} for device {ordinal}", opening(*kind))]
    Context {
        /// What kind of device.
        kind: DeviceKind,
        /// Which one.
        ordinal: u32,
        /// What went wrong.
        #[source]
        cause: kiln_driver::Error,
    },
    /// No device answers to that name.
    #[error("there is no {kind} device with {wanted}; there is {}", listed(known))]
    UnknownDevice {
        /// What kind of device.
        kind: DeviceKind,
        /// What was asked for.
        wanted: String,
        /// How many there are; their ordinals count from zero.
        known: usize,
    },
    /// Text that names no device.
    #[error("`{text}` names no device; write an ordinal such as 0, a UUID such as GPU-0123..., or `best`")]
    UnknownSelection {
        /// The text.
        text: String,
    },
    /// Text that names no policy.
    #[error(transparent)]
    UnknownPolicy(#[from] UnknownPolicy),
    /// An environment variable has an invalid value.
    #[error("invalid value {variable}=`{text}`: expected {wanted}")]
    Environment {
        /// The variable.
        variable: &'static str,
        /// Its value.
        text: String,
        /// The valid values.
        wanted: &'static str,
    },
    /// The process's policy was settled already, as another one.
    #[error(
        "the policy of this process is `{in_force}` already and cannot become `{wanted}`; set it once, before first use"
    )]
    PolicyConflict {
        /// The policy that stays.
        in_force: Policy,
        /// The one that was asked for.
        wanted: Policy,
    },
    /// This process was forked from the one that opened the device, and devices do not survive that.
    #[error(
        "the device was opened before this process was forked; start the process anew (exec) to use a device in it"
    )]
    Forked,
    /// A build step asked for the very thing it builds.
    #[error("the build step asked for what it is to build itself; take the parts it was given")]
    Recursion,
    /// Something that was left out when kiln was built.
    #[error("{what} are not part of this build; {next}")]
    NotBuilt {
        /// What was left out.
        what: &'static str,
        /// How to get it.
        next: &'static str,
    },
    /// An error of a platform that kiln does not know.
    #[error(transparent)]
    Other(Arc<dyn std::error::Error + Send + Sync>),
}

impl ProbeError {
    /// An error of a platform's own.
    pub fn other(error: impl std::error::Error + Send + Sync + 'static) -> Self {
        Self::Other(Arc::new(error))
    }

    /// The error of the device, if one is behind this.
    pub fn driver(&self) -> Option<&kiln_driver::Error> {
        match self {
            Self::Driver(error) => Some(error),
            Self::Listing { cause, .. } | Self::Context { cause, .. } => Some(cause),
            _ => None,
        }
    }

    /// Why there is no device, where nothing is broken.
    pub fn absence(&self) -> Option<&Absence> {
        match self {
            Self::Absent(absence) => Some(absence),
            _ => None,
        }
    }

    /// Whether the same request may succeed later although the caller changes nothing. A device is opened anew by each
    /// request, so one that could not be opened may answer next time, unless it is lost or lacks something. A list that
    /// failed is kept until it is looked up anew, unless memory was short.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Driver(error) => error.is_retryable(),
            Self::Listing { cause, .. } => cause.is_retryable(),
            Self::Context { cause, .. } => !cause.is_sticky() && !cause.is_unsupported(),
            _ => false,
        }
    }
}

fn opening(kind: DeviceKind) -> &'static str {
    match kind {
        DeviceKind::Cuda => "failed to create CUDA context",
        DeviceKind::Simulated => "failed to start the simulation",
    }
}

fn listed(known: &usize) -> String {
    match known {
        0 => "none".into(),
        1 => "one, number 0".into(),
        count => format!("0 to {}", count - 1),
    }
}
