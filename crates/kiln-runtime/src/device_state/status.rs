//! A device's state, as of one moment.

use std::fmt;
use std::sync::Arc;

use super::cause::Cause;
use super::phase::Phase;
use crate::ids::Generation;

/// What a device is doing, with the cause where there is one.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum DeviceState {
    /// Its runtime is being built.
    Starting,
    /// It takes work.
    Ready,
    /// Its context is gone; whether it comes back is not decided.
    Lost(Arc<Cause>),
    /// Its context is being built again.
    Rebuilding(Arc<Cause>),
    /// It is gone for good.
    Failed(Arc<Cause>),
    /// It takes no new work and finishes what it has.
    ShuttingDown,
    /// Nothing is left to do, and nothing will change any more.
    Stopped,
}

impl DeviceState {
    /// The phase alone.
    pub fn phase(&self) -> Phase {
        match self {
            Self::Starting => Phase::Starting,
            Self::Ready => Phase::Ready,
            Self::Lost(_) => Phase::Lost,
            Self::Rebuilding(_) => Phase::Rebuilding,
            Self::Failed(_) => Phase::Failed,
            Self::ShuttingDown => Phase::ShuttingDown,
            Self::Stopped => Phase::Stopped,
        }
    }

    /// Whether it takes work.
    pub fn is_ready(&self) -> bool {
        matches!(self, Self::Ready)
    }

    /// Why it is lost, being rebuilt or failed.
    pub fn cause(&self) -> Option<&Arc<Cause>> {
        match self {
            Self::Lost(cause) | Self::Rebuilding(cause) | Self::Failed(cause) => Some(cause),
            Self::Starting | Self::Ready | Self::ShuttingDown | Self::Stopped => None,
        }
    }
}

impl fmt::Display for DeviceState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.cause() {
            Some(cause) => write!(f, "{}: {cause}", self.phase()),
            None => write!(f, "{}", self.phase()),
        }
    }
}

/// A device's state, and how much happened before: enough to see later what was missed.
#[derive(Clone, Debug)]
pub struct Status {
    /// What it is doing.
    pub state: DeviceState,
    /// How often its context was rebuilt.
    pub generation: Generation,
    /// How often its state changed.
    pub changes: u64,
}

impl Status {
    /// The phase alone.
    pub fn phase(&self) -> Phase {
        self.state.phase()
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "generation {}, {}", self.generation.0, self.state)
    }
}
