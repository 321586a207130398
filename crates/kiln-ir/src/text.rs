//! The text form, `.kir`.
//!
//! ```text
//! kernel saxpy(in x: f32[], inout y: f32[like x], a: f32) block(256) over(y) {
//!     let i: u64 = global.x;
//!     y[i] = fma(a, x[i], y[i]);
//! }
//! ```
//!
//! Expressions are split from left to right, operands before the operation, into the values of a
//! [`Draft`](crate::Draft). The printer nests an unnamed value that is used once, right where it was computed. The
//! output parses to an equal program.

mod error;
mod expression;
mod kernel_header;
mod lexer;
mod number_literal;
mod parser;
mod print;
mod print_operation;
mod print_statement;
mod reserved_words;
mod tile;

pub use error::TextError;
pub(crate) use reserved_words::is_name;
