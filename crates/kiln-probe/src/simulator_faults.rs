//! The planned faults of the process's simulated device.

/// The environment variable with what goes wrong on the first simulated device of the process, as a `kiln_sim::FaultPlan` in text: `oom@3,lost@40`. Devices in worker
/// processes, and those of machines that the program builds itself, have no such faults.
pub const FAULTS_VARIABLE: &str = "KILN_SIM_FAULTS";

/// The environment variable with the file to which the device writes which of these faults have come: a line for each, with its place in the plan, counted from 0.
pub const FAULT_LOG_VARIABLE: &str = "KILN_SIM_FAULT_LOG";
