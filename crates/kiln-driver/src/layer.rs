//! Layers: a driver around a driver.
//!
//! A layer sees each call before and after it happens. It is written as a [`Layer`], two methods long, and
//! [`Layered`] does the forwarding once for all of them.

mod checking;
mod counting;
mod forwarding;
#[cfg(feature = "trace")]
mod recording;

pub use checking::{Checking, LiveObject, Rule, Severity, Violation};
pub use counting::{CommandKind, Counting, Counts};
pub use forwarding::{Layer, Layered};
#[cfg(feature = "trace")]
pub use recording::{RecordingLayer, TraceBuffer};
