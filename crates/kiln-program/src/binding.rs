//! Binds buffers and scalars to the parameters of a program, and checks them.

mod argument;
mod binding_check;
mod bindings;
mod outputs;
mod parameter;

pub use argument::{Argument, Arguments, Parameters};
pub use bindings::Bindings;
pub use outputs::Outputs;
pub use parameter::{Kept, ProgramParameter, ProgramValue, Read, ReadWrite, Write};

pub(crate) use binding_check::Fitting;
pub(crate) use bindings::{Bound, HostVector};
pub(crate) use parameter::Said;
