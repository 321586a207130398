//! Random numbers by Philox4x32-10.
//!
//! A draw is a pure function of its seed and its offset: element `i` of a draw at offset `o` is number `o + i` of the sequence of
//! that seed. So draws can be split, repeated, recorded into graphs and done again after a fault, and every device gives the same
//! bits. There is no generator with a state on the device.
//!
//! The sequences of [`Bits`] (`u32`) and [`Uniform`] are those of cuRAND's `CURAND_RNG_PSEUDO_PHILOX4_32_10` in its default order, bit
//! for bit. [`Normal`] and [`LogNormal`] use the same words in the same way (Box and Muller) and agree with cuRAND up to the
//! rounding of logarithm, sine and cosine. Here these are fixed sequences of IEEE operations, so that all devices, the simulated one
//! among them, give the same bits; cuRAND's differ in the last bits, and so may those of another release of it.
//!
//! How far a number lies from the exact one of the same words: [`Normal`] with mean 0 and deviation 1 at most 5e-6 (`f32`) and 1e-14
//! (`f64`), and [`LogNormal`] at most 6e-6 and 2e-14 of the number itself. Mean and deviation add the rounding of one product and one sum.
//!
//! | distribution | elements | values |
//! |---|---|---|
//! | [`Bits`] | `u32`, `u64` | all |
//! | [`Uniform`] | `f32`, `f64` | above 0, at most 1 |
//! | [`Normal`] | `f32`, `f64` | |
//! | [`LogNormal`] | `f32`, `f64` | above 0 |
//! | [`Bernoulli`] | `u8` | 1 with the probability, otherwise 0 |
//! | [`Integers`] | `u32`, `i32`, `u64`, `i64` | from a range; no value is more likely than another by more than 2^-32 of its probability |
//! | [`Permutation`] | `u32`, `u64` | 0 to the length less one, each once |
//!
//! Types in reading order: [`Sampler`], [`Draw`], [`Distribution`], [`Philox`].

mod distribution;
mod kernel_text;
mod philox;
mod sampler;

pub use distribution::{
    Bernoulli, Bits, Distribution, Integers, LogNormal, Normal, Permutation, RandomKernel, Uniform,
};
pub use philox::Philox;
pub use sampler::{Draw, Sampler};
