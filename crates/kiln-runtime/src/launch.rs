//! Kernels and their launches.

mod argument_tuple;
mod arguments;
mod builder;
pub(crate) mod byte_arguments;
pub(crate) mod called_launch;
mod check;
mod extra_buffers;
mod kernel;
mod launch_label;
pub(crate) mod library_launch;
pub(crate) mod module;
mod module_global;
mod owned_launch;
mod retained_arguments;
mod shape;
mod tensor_map_arguments;
mod variables;

pub use argument_tuple::{Accept, ByValue, In, InOut, Out, Pass};
pub use builder::{Launch, OnStream};
pub use kernel::Kernel;
pub use module::Module;
pub(crate) use module::WeakModule;
pub(crate) use owned_launch::LaunchTemplate;
pub(crate) use retained_arguments::Kept;
