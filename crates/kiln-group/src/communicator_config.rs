//! `DeviceCommunicatorConfig`: how long ranks wait for each other.

use std::time::Duration;

/// How a communicator behaves. All ranks should have the same.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DeviceCommunicatorConfig {
    /// How long a rank waits for the others, while its communicator is made and in a collective. Then every rank that waits fails, with an error
    /// that names the ranks it waited for. On a simulated device it counts in real time, while no rank does anything. On a GPU it
    /// counts for the oldest collective of a rank that is not done, from when it became that, work before it in its streams included. If another rank has not called it then, the tickets of the rank
    /// fail with [`CollectiveOverdue`](crate::CollectiveOverdue), up to a second later; if all have called it, at twice the deadline. Replays of graphs are not limited on GPUs.
    pub deadline: Duration,
}

impl Default for DeviceCommunicatorConfig {
    /// A deadline of one minute.
    fn default() -> Self {
        Self { deadline: Duration::from_secs(60) }
    }
}
