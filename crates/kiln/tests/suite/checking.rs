//! The simulator as a sanitizer, as a program sees it: a launch touches what it declares.

mod bad_input;
mod everywhere;
mod failing;
mod footprint;
mod kernels;
