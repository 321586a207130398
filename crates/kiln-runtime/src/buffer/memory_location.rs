//! The device address and size of a buffer.

use kiln_driver::DeviceAddress;

/// Where the memory of a handle is, as of the moment it was asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Memory {
    /// The first byte.
    pub address: DeviceAddress,
    /// How many bytes.
    pub bytes: u64,
}
