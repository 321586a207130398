//! Whether a device is lost, asked of the device.

use kiln_driver::{Driver, Health};
use kiln_runtime::{DeviceRuntime, Error};

/// What a lost device answers. None if it is not lost, or was rebuilt since.
pub(crate) fn lost_device(runtime: &DeviceRuntime) -> Option<Error> {
    let refused = runtime.zeros::<u8>(1).err().filter(Error::is_lost);
    refused.or_else(|| match runtime.driver().health() {
        Health::Lost(error) => Some(Error::new(error)),
        _ => None,
    })
}

/// Whether a device can be used, asked beside the program.
pub(crate) fn health_beside(driver: &dyn Driver) -> Health {
    driver.health_in_background().unwrap_or_else(|| driver.health())
}
