//! Kernels and their launches.

mod arguments;
mod beside;
mod builder;
mod check;
mod global;
mod kept;
mod kernel;
mod module;
mod pass;
mod shape;
mod template;
mod variables;

pub use builder::{Launch, OnStream};
pub(crate) use kept::Kept;
pub use kernel::Kernel;
pub use module::Module;
pub(crate) use module::WeakModule;
pub use pass::{Accept, ByValue, In, InOut, Out, Pass};
pub(crate) use template::LaunchTemplate;
