//! The answer to "is there a GPU?".

use std::sync::Arc;

use crate::absence_reason::Absence;
use crate::devices::Devices;

/// Whether there is a device, when nothing is broken.
///
/// A fault is not a value of this type: it is the error of the call that asked.
#[derive(Clone, Debug)]
pub enum Availability {
    /// At least one device works. None has been opened by asking.
    Available(Arc<Devices>),
    /// There is none, and that is why.
    Absent(Absence),
}

impl Availability {
    /// Whether there is a device.
    pub fn is_available(&self) -> bool {
        matches!(self, Self::Available(_))
    }

    /// The devices, where there are some.
    pub fn devices(&self) -> Option<&Devices> {
        match self {
            Self::Available(devices) => Some(devices),
            Self::Absent(_) => None,
        }
    }

    /// Why there is none.
    pub fn absence(&self) -> Option<&Absence> {
        match self {
            Self::Available(_) => None,
            Self::Absent(absence) => Some(absence),
        }
    }
}
