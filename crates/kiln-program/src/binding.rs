//! What a caller gives to a program, and whether it fits.

mod argument;
mod bindings;
mod fitting;
mod outputs;
mod parameter;

pub use argument::{Argument, Arguments, Parameters};
pub use bindings::Bindings;
pub use outputs::Outputs;
pub use parameter::{Kept, ProgramParameter, ProgramValue, Read, ReadWrite, Write};

pub(crate) use bindings::{Bound, HostVector};
pub(crate) use fitting::Fitting;
pub(crate) use parameter::Said;
