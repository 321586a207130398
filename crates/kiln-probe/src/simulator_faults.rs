//! The planned faults of the process's simulated device.

/// The environment variable with what goes wrong on the first simulated device of the process, as a `kiln_sim::FaultPlan` in text: `oom@3,lost@40`. Devices in worker
/// processes, and those of machines that the program builds itself, have no such faults.
pub const FAULTS_VARIABLE: &str = "KILN_SIM_FAULTS";
