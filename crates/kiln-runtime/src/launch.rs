//! Kernels and their launches.

mod arguments;
mod builder;
mod check;
mod kernel;
mod mismatch;
mod module;
mod number;
mod pass;
mod shape;
mod signature;
mod slot;
mod template;

pub use builder::{Launch, OnStream};
pub use kernel::Kernel;
pub use mismatch::{Given, Mismatch, ParameterName};
pub use module::Module;
pub(crate) use module::WeakModule;
pub use number::Number;
pub use pass::{Accept, ByValue, In, InOut, Out, Pass};
pub use signature::{Effect, Parameter, ParameterKind, Signature};
pub(crate) use template::LaunchTemplate;
