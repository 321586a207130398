//! Interim.
use std::sync::Arc;

use kiln_driver::{DeviceKind, Driver};

use super::absence::Absence;
use super::platform::{Listing, Platform};

pub(super) struct CudaPlatform;

impl Platform for CudaPlatform {
    fn kind(&self) -> DeviceKind {
        DeviceKind::Cuda
    }

    fn list(&self) -> crate::error::Result<Listing> {
        Ok(Listing::Absent(Absence::NoDevice))
    }

    fn open(&self, _: u32) -> crate::error::Result<Arc<dyn Driver>> {
        Err(kiln_driver::Error::unsupported("open", "opening", "not joined yet").into())
    }
}
