//! How long things take on the virtual clock.

/// The cost model. The numbers are of the size measured on an H200; what matters is that they are always the same.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Costs {
    /// Host time of any call but those that measure, which take none: to make, signal, await and destroy an event with timing, and to ask for
    /// the time between two.
    pub call_ns: u64,
    /// Host time of a poll that found nothing new; it doubles while nothing new is found.
    pub poll_ns: u64,
    /// Device time of a launch, before it touches memory.
    pub launch_ns: u64,
    /// Device time before the first byte of a copy moves.
    pub copy_ns: u64,
    /// Device time before the first byte of a fill is written.
    pub fill_ns: u64,
    /// Device time between two nodes of a graph.
    pub node_ns: u64,
    /// Between host and device, and between devices.
    pub link_bytes_per_us: u64,
    /// Inside a device.
    pub memory_bytes_per_us: u64,
}

impl Default for Costs {
    fn default() -> Self {
        Self {
            call_ns: 400,
            poll_ns: 300,
            launch_ns: 2_500,
            copy_ns: 1_300,
            fill_ns: 800,
            node_ns: 700,
            link_bytes_per_us: 55_000,
            memory_bytes_per_us: 2_000_000,
        }
    }
}

impl Costs {
    pub(crate) fn link(&self, bytes: u64) -> u64 {
        self.copy_ns.saturating_add(moving(bytes, self.link_bytes_per_us))
    }

    pub(crate) fn inside(&self, latency_ns: u64, bytes: u64) -> u64 {
        latency_ns.saturating_add(moving(bytes, self.memory_bytes_per_us))
    }
}

fn moving(bytes: u64, bytes_per_us: u64) -> u64 {
    let nanoseconds = u128::from(bytes) * 1_000 / u128::from(bytes_per_us.max(1));
    u64::try_from(nanoseconds).unwrap_or(u64::MAX)
}
