//! Repeats the allocations and frees of a log.
//!
//! ```text
//!   RMM's CSV ─┐
//!   kiln's CSV ─┼─► AllocationLog ──► replay on a ReplayStack ──► ReplayReport: time, peak, reserved over live, refusals
//!   kiln trace ─┘                    └──► smallest memory that would have done
//! ```
//!
//! Each thread of the log is a thread, each stream a stream, and calls are made one after the other in the order of the
//! log, so that the outcome does not depend on the machine. Streams have no work on them: what is freed can be reused
//! by all streams at once, and the time measured is the time of the calls alone.

mod allocation_log;
mod engine;
mod log_builder;
mod log_error;
mod replay_stack;
mod report;
mod rmm_csv_reader;
mod smallest_memory;

pub use allocation_log::{AllocationLog, LogAction, LogEvent, LogOptions};
pub use engine::replay;
pub use log_error::{LogError, LogProblem};
pub use replay_stack::ReplayStack;
pub use report::ReplayReport;
pub use smallest_memory::{SMALLEST_STEP_BYTES, smallest_memory};
