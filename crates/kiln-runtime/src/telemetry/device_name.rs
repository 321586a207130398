//! The labels that identify a device in telemetry.

use kiln_driver::DeviceInfo;

/// What tells one device from another on a page of numbers.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct DeviceName {
    /// "cuda" or "simulated".
    pub kind: String,
    /// Its number among the devices of its kind.
    pub ordinal: u32,
    /// The name the vendor gave it.
    pub name: String,
    /// Its identity, the same after a reboot.
    pub uuid: String,
}

impl From<&DeviceInfo> for DeviceName {
    fn from(info: &DeviceInfo) -> Self {
        Self {
            kind: info.kind.to_string().to_ascii_lowercase(),
            ordinal: info.ordinal,
            name: info.name.clone(),
            uuid: info.uuid.to_string(),
        }
    }
}
