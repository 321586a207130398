//! What a device is doing, and what became of it: phases, causes and losses. Knows no runtime.
//!
//! The table of phases and who may change what is described at `kiln::recovery`.

mod cause;
mod fault_detector;
mod interruption;
mod loss;
mod phase;
mod state_cell;
mod state_data;
mod state_observer;
mod status;
mod submission_set;
mod surviving_memory;

pub use cause::Cause;
pub use phase::{ForbiddenChange, Phase};
pub use status::{DeviceState, Status};
pub use surviving_memory::Keep;

pub(crate) use fault_detector::FaultDetector;
pub(crate) use loss::Loss;
pub(crate) use state_cell::StateCell;
pub(crate) use state_observer::StateObserver;
pub(crate) use submission_set::SubmissionSet;
