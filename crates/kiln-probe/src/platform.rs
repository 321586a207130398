//! The `Platform` trait: a source of devices.
//!
//! The probe knows no CUDA. It asks a platform to list and to open, and keeps the answers. Two platforms ship with
//! kiln; a test or a program with custom devices brings another.

use std::sync::Arc;

use kiln_driver::{DeviceKind, Driver};
#[cfg(all(feature = "isolate", target_os = "linux"))]
use kiln_isolate::DeviceSpec;

use crate::absence_reason::Absence;
use crate::devices::DeviceEntry;
use crate::error::Result;

/// A source of devices.
///
/// Calls may come from any thread. The probe asks for one listing and one opening per device at a time, and holds no
/// lock meanwhile.
pub trait Platform: Send + Sync + 'static {
    /// What its devices are.
    fn kind(&self) -> DeviceKind;

    /// Finds the devices, without opening any.
    ///
    /// # Errors
    /// The platform is there and does not work.
    fn list(&self) -> Result<Listing>;

    /// Opens a device. Called only for ordinals that were listed.
    ///
    /// # Errors
    /// The device is there and cannot be opened.
    fn open(&self, ordinal: u32) -> Result<Arc<dyn Driver>>;

    /// How a worker process can open a device instead, for runtimes that are configured so; none if it cannot.
    ///
    /// # Errors
    /// What keeps the device from being named.
    #[cfg(all(feature = "isolate", target_os = "linux"))]
    fn backend(&self, ordinal: u32) -> Result<Option<DeviceSpec>> {
        let _ = ordinal;
        Ok(None)
    }
}

/// What a platform found.
#[derive(Clone, Debug)]
pub enum Listing {
    /// Its devices, by ordinal; one that does not answer is listed with its error.
    Devices(Vec<DeviceEntry>),
    /// Nothing, and why.
    Absent(Absence),
}

impl<P: Platform + ?Sized> Platform for Arc<P> {
    fn kind(&self) -> DeviceKind {
        (**self).kind()
    }

    fn list(&self) -> Result<Listing> {
        (**self).list()
    }

    fn open(&self, ordinal: u32) -> Result<Arc<dyn Driver>> {
        (**self).open(ordinal)
    }

    #[cfg(all(feature = "isolate", target_os = "linux"))]
    fn backend(&self, ordinal: u32) -> Result<Option<DeviceSpec>> {
        (**self).backend(ordinal)
    }
}
