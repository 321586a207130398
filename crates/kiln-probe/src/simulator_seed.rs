//! The seed of the process's simulated device.

/// The environment variable that picks the order in which the process's simulated device runs ready work.
pub const SEED_VARIABLE: &str = "KILN_SIM_SEED";
