//! Functions, sums and products of elements, and conversions between types.
//!
//! | call | computes | elements |
//! |---|---|---|
//! | [`Elementwise::apply`] | `y = f(x)`; see [`ElementFunction`] | `f32`, `f64`, `f16`, `bf16` |
//! | [`Elementwise::apply_backward`] | `dx = dy f'(x)` | `f32`, `f64`, `f16`, `bf16` |
//! | [`Elementwise::combine`] | `c = a + b` and others; see [`Combination`] | `f32`, `f64`, `f16`, `bf16`, integers |
//! | [`Elementwise::affine`] | `y = scale x + shift` | `f32`, `f64`, `f16`, `bf16` |
//! | [`Elementwise::cast`] | the elements in another type | `f32`, `f64`, `f16`, `bf16`, integers |
//!
//! The kernels are programs of kiln-ir: they need no library and no compiler, and give the same bits on every device, except for those of a NaN. `f16` and `bf16`
//! are computed in `f32` and rounded once.
//!
//! ```
//! use kiln::DeviceRuntime;
//! use kiln_libs::elementwise::{Combination, Elementwise, ElementFunction};
//!
//! let gpu = DeviceRuntime::simulated(1)?;
//! let elements = Elementwise::new(&gpu);
//! let x = gpu.upload(&[-1.0_f32, 0.0, 4.0])?;
//! let (y, z) = (gpu.allocate::<f32>(3)?, gpu.allocate::<i32>(3)?);
//! elements.apply(ElementFunction::Relu, &x, &y).submit()?;
//! elements.combine(Combination::Subtract, &y, &x, &y).submit()?;
//! elements.cast(&y, &z).submit()?;
//! assert_eq!(z.download()?, [1, 0, 0]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Types in reading order: [`Elementwise`], [`ElementFunction`], [`Combination`], [`ElementNumber`], [`ElementFloat`].

mod affine;
mod apply;
mod cast;
mod combine;
mod element_function;
mod element_number;
mod element_program;
mod handle;

pub use affine::Affine;
pub use apply::{Apply, ApplyBackward};
pub use cast::Cast;
pub use combine::{Combination, Combine};
pub use element_function::ElementFunction;
pub use element_number::{ElementFloat, ElementNumber};
pub use handle::Elementwise;
