//! Plans: everything about a launch that can be known without a device.

mod binding;
mod error;
mod launch;

pub use binding::{Binding, BindingPlan};
pub use error::PlanError;
pub use launch::{DeviceLimits, LaunchPlan, LaunchRequest};
