//! Undefined values: what is known of registers that hold bytes which were never written.
//!
//! A load of such bytes is no mistake: a struct with padding is copied by whole words. The bits are marked in the register instead, and
//! the marks go where the value goes: through moves, packs, shuffles, selections, calls and stores, and through bitwise operations as far as
//! these let the bits through. An operation that computes with a marked bit, decides by it or uses it as an address is reported.
//!
//! Only frames in which a register is marked pay for this: see [`UndefinedRegisters::any`].

mod flow;
mod origin;
mod registers;

pub(crate) use flow::{DataFlow, undefined_bitwise};
pub(crate) use origin::{Origin, OriginNotes};
pub(crate) use registers::{Carried, UndefinedRegisters};
