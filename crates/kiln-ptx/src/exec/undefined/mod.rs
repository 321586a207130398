//! Undefined values: what is known of registers that hold bytes which were never written.
//!
//! A load of such bytes is no mistake: a struct with padding is copied by whole words. The bits are marked in the register instead, and
//! the marks go where the value goes: through moves, packs, shuffles, selections, calls and stores, through bitwise operations as far as
//! these let the bits through, and into the results of arithmetic, conversions and comparisons. Compilers compute before they select, so none of these is a
//! use. A use is what decides: a branch, a guard, an address, an operand of an atomic or a collective, a printed value.
//!
//! Only frames in which a register is marked pay for this: see [`UndefinedRegisters::any`].

mod alternatives;
mod arithmetic;
mod origin;
mod propagation;
mod registers;

pub(crate) use alternatives::whole_bytes;
pub(crate) use arithmetic::{undefined_arithmetic, upward};
pub(crate) use origin::{Absence, Origin, OriginNotes};
pub(crate) use propagation::{DataFlow, undefined_bitwise, undefined_comparison};
pub(crate) use registers::{Carried, UndefinedRegisters};
