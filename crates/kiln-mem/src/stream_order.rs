//! The trait through which memory asks whether work on a stream is done.

pub use kiln_order::{DriverOrder, Order};
