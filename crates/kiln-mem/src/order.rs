//! The part that submits work knows what runs after what; memory only asks.

pub use kiln_order::{DriverOrder, Order};
