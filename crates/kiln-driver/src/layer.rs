//! Layers: a driver around a driver.
//!
//! A layer sees each call before and after it happens. It is written as a [`Layer`], two methods long, and
//! [`Layered`] does the forwarding once for all of them.

mod counting;
mod layered;

pub use counting::{Counting, Counts};
pub use layered::{Layer, Layered};
