//! Loops over the lanes of a warp, compiled for several instruction sets and chosen at run time.
//!
//! A binary is compiled for the oldest processor it may run on, and a loop over 32 lanes is two to four times faster with what newer ones have. This crate
//! holds the one step that the compiler cannot check: to enter code for instructions of which the processor has just said that it has them. What such a
//! loop does is written elsewhere, once, in safe code.
//!
//! # The contract
//!
//! - [`InstructionSet::detected`] asks the processor. There is no other way to an instruction set beyond the portable one.
//! - [`InstructionSet::run`] runs a [`LaneLoop`] compiled for the set. All sets give the same bits: no floating-point operation is contracted or reordered.
//! - [`words`] shows a column of 64-bit values as 32-bit ones, for loops over `f32`; [`first_words`] is room for a column of 32-bit values.
//!
//! # What it does not do
//!
//! It has no vector types: loops are plain, and the compiler vectorises them. AVX-512 needs a newer compiler than the oldest one that is supported. On ARM
//! the portable set has NEON already.

mod column_words;
mod instruction_set;

pub use column_words::{first_words, first_words_mut, words, words_mut};
pub use instruction_set::{InstructionSet, LaneLoop};
