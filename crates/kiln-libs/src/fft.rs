//! Fourier transforms of one to three dimensions, complex and real, in batches.
//!
//! Arrays are dense and the last extent is the fastest. The spectrum of `n` real numbers has `n / 2 + 1` complex ones: the others are their
//! conjugates. Complex numbers are `num_complex::Complex` or arrays of two.
//!
//! | call | reads | writes |
//! |---|---|---|
//! | [`FftCall::forward`], [`FftCall::inverse`] | complex | complex |
//! | [`FftCall::forward_in_place`], [`FftCall::inverse_in_place`] | complex | the same |
//! | [`FftCall::real_forward`] | real | complex |
//! | [`FftCall::real_inverse`] | complex; destroyed, if there are two or three extents | real |
//!
//! No transform is scaled unless [`FftCall::scale`] says so: an inverse of a forward transform is the input times the number of its elements.
//!
//! Types in reading order: [`Fft`], [`FftCall`], [`Scale`], [`Complex`].

mod element;
mod transform;

pub use element::{Complex, RealPart};
pub use transform::{Fft, FftCall, Scale};
