//! Doing again what a log says was done.
//!
//! ```text
//!   RMM's CSV ─┐
//!   kiln's CSV ─┼─► Log ──► replay on a Stage ──► Report: time, peak, reserved over live, refusals
//!   kiln trace ─┘                    └──► smallest memory that would have done
//! ```
//!
//! Each thread of the log is a thread, each stream a stream, and calls are made one after the other in the order of the
//! log, so that the outcome does not depend on the machine. Streams have no work on them: what is freed can be reused
//! by everybody at once, and the time measured is the time of the calls alone.

mod builder;
mod csv;
mod engine;
mod log;
mod log_error;
mod report;
mod smallest;
mod stage;

pub use engine::replay;
pub use log::{Action, Event, Log, LogOptions};
pub use log_error::{LogError, LogProblem};
pub use report::Report;
pub use smallest::{SMALLEST_STEP_BYTES, smallest_memory};
pub use stage::Stage;
