//! Why a descriptor of exported pages is not taken.

use std::io;

/// Why a descriptor was not taken.
#[derive(Debug)]
#[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "no descriptor is looked at"))]
pub(crate) enum RejectedPages {
    /// It is not a memory file of a simulated device.
    NotPages,
    /// It is one, of another size.
    Size(u64),
    /// The system refused.
    System(io::Error),
}
