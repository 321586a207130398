//! What a device is doing, and what became of it: phases, causes and losses. Knows no runtime.
//!
//! The table of phases and who may change what is described at `kiln::state`.

mod board;
mod cause;
mod cell;
mod keep;
mod loss;
mod phase;
mod runs;
mod sentinel;
mod status;

pub use cause::Cause;
pub use keep::Keep;
pub use phase::{ForbiddenChange, Phase};
pub use status::{DeviceState, Status};

pub(crate) use cell::StateCell;
pub(crate) use loss::Loss;
pub(crate) use runs::Runs;
pub(crate) use sentinel::Sentinel;
