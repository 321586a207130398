//! The simulator as a sanitizer, as a program sees it: a launch touches what it declares, and blocks begin and end.

mod bad_input;
mod blocks;
mod copies;
mod endings;
mod everywhere;
mod failing;
mod footprint;
mod kernels;
mod told;
