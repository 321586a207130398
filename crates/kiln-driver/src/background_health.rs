//! Whether a device can be used, asked beside the program.

use crate::stream::Health;

/// The part of a [`Driver`](crate::Driver) that a thread asks which looks from time to time on its own and not for the program. It stands apart because it
/// queues nothing and changes nothing that the program sees.
pub trait BackgroundHealth {
    /// Whether the device can still be used. A simulated machine does not move for it while its program makes calls. None where a call of
    /// [`Driver::health`](crate::Driver::health) is no work of the program either.
    fn health_in_background(&self) -> Option<Health> {
        None
    }
}
