//! One device, ready to be used.

use std::sync::Arc;

use kiln_driver::{DeviceInfo, Driver};

use crate::error::Result;

/// What a runtime is built with.
#[derive(Clone, Debug, Default)]
pub struct RuntimeConfig {}

/// The runtime of one device.
pub struct DeviceRuntime {
    driver: Arc<dyn Driver>,
}

impl DeviceRuntime {
    /// A runtime over a driver that is open already.
    ///
    /// # Errors
    /// What the driver answers while the runtime's own objects are made.
    pub fn from_driver(driver: Arc<dyn Driver>, config: RuntimeConfig) -> Result<Self> {
        let RuntimeConfig {} = config;
        Ok(Self { driver })
    }

    /// The device below.
    pub fn driver(&self) -> &Arc<dyn Driver> {
        &self.driver
    }

    /// What the device is.
    pub fn info(&self) -> &DeviceInfo {
        self.driver.info()
    }
}
