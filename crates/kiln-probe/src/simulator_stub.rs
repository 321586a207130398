//! The place of the simulated devices in a build without them: every request is an error that says so.

use std::sync::Arc;

use kiln_driver::{DeviceKind, Driver};

use crate::error::{ProbeError, Result};
use crate::platform::{Listing, Platform};

/// The process's machine, which this build does not have.
pub struct ProcessMachine;

impl Platform for ProcessMachine {
    fn kind(&self) -> DeviceKind {
        DeviceKind::Simulated
    }

    fn list(&self) -> Result<Listing> {
        Err(absent())
    }

    fn open(&self, _: u32) -> Result<Arc<dyn Driver>> {
        Err(absent())
    }
}

/// A simulated device for the caller alone.
///
/// # Errors
/// Always: simulated devices are not part of this build.
pub fn simulated_device(_: u64) -> Result<Arc<dyn Driver>> {
    Err(absent())
}

fn absent() -> ProbeError {
    ProbeError::NotBuilt { what: "simulated devices", next: "enable the feature `sim` of kiln" }
}
