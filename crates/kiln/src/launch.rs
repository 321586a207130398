//! What a launch is made of: arguments, signatures, modules, and the reasons it is refused for.
//!
//! [`Launch`](crate::Launch) is the builder and [`Kernel`](crate::Kernel) what it launches.

pub use kiln_driver::{Access, Dim3};
pub use kiln_runtime::{
    Accept, ByValue, Effect, Given, In, InOut, Mismatch, Module, Number, OnStream, Out, Parameter,
    ParameterKind, ParameterName, Pass, Signature,
};
