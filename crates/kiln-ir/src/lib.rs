//! Typed kernel programs: a person writes a kernel in Rust or in a text file, and everybody who runs it gets the same
//! result, to the last edge case.
//!
//! A [`Program`] is built, parsed, verified, printed, interpreted and emitted as PTX here. This crate knows no device
//! and contains no unsafe code; who launches a program is behind it.
//!
//! # The contract
//!
//! - A [`Program`] was verified: its types fit, every value is there where it is used, every variable has a value before
//!   it is read, every thread that must meet others comes to the meeting. What does not verify is refused with the
//!   statement and the reason ([`VerifyError`]).
//! - Every operation carries its type, and what it does at its edges is said once, where it is documented: [`Op`],
//!   [`UnaryOp`], [`BinaryOp`], [`CompareOp`], [`Function`], [`AtomicOp`], [`WarpOp`], [`StatementKind`]. A load out of
//!   range gives 0, a store or an atomic out of range does nothing.
//! - [`Interpretation`] is the meaning. PTX that [`Program::emit`] makes for any [`Target`] gives the same bits, NaN
//!   aside, whose bits are not promised, and programs aside whose threads race: those the interpreter shows by running
//!   them in two orders.
//! - The [`Display`](std::fmt::Display) of a program is its text form, which parses to an equal program.
//! - A program reaches nothing but its own buffers, unless one is declared `unchecked`. So to launch one is safe when its
//!   buffers are as long as is said, do not overlap where one of them is written, and the parameters lie as
//!   [`Layout`] says.
//! - Nothing panics on bad input, and a text cut anywhere is an error with its place.
//!
//! # The model
//!
//! ```text
//!   Rust closure ── Kernel ──┐                        ┌── Interpretation ──▶ Outcome
//!                            ├─▶ Draft ──▶ Program ───┤
//!   .kir text ───── parser ──┘       verify           ├── emit(Target) ────▶ Emitted: PTX, Layout
//!                                                     ├── Display ─────────▶ .kir text
//!                                                     └── BindingPlan, LaunchPlan
//!
//!   Draft ─┬─ buffers, scalars, shared memory                    (Buffer, Scalar, Shared)
//!          ├─ values and variables, with their types             (Value, Variable)
//!          └─ body: statements in blocks                         (Statement, StatementKind)
//!               └─ let value = operation on values and literals  (Op, Operand, Literal)
//! ```
//!
//! ```
//! use kiln_ir::{Interpretation, Program, Target};
//!
//! let program = Program::build("sum_of_squares", |k| {
//!     let x = k.input::<f32>("x");
//!     let sum = k.in_out::<f32>("sum").count(1);
//!     k.block([32, 1, 1]);
//!     k.over(x);
//!     let v = x.load(k.global_x());
//!     let total = (v * v).warp_add();
//!     k.if_(k.lane().eq(0), || {
//!         sum.atomic_add(0, total);
//!     });
//! })?;
//! let mut buffers = [[3.0f32, 4.0].map(f32::to_le_bytes).concat(), vec![0; 4]];
//! Interpretation::new([1, 1, 1]).run(&program, &[], &mut buffers)?;
//! assert_eq!(buffers[1], 25.0f32.to_le_bytes());
//!
//! assert_eq!(Program::parse(&program.to_string())?, program);
//! assert!(program.emit(Target::new(90).unwrap()).text.contains(".entry sum_of_squares"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Types in reading order: [`Program`], [`Kernel`] with [`Val`], [`Var`] and [`Mem`]; [`Type`], [`Literal`]; [`Draft`],
//! [`Statement`], [`Op`]; [`Interpretation`]; [`Target`], [`Emitted`], [`Layout`]; [`BindingPlan`], [`LaunchPlan`].
//!
//! # What it does not do
//!
//! It does not find races by itself, and it does not optimise beyond constants and dead code: `ptxas` does. It has no
//! functions that call each other, no pointers, no structures, no matrix instructions.

#![forbid(unsafe_code)]

mod build;
mod declaration;
mod evaluate;
mod function;
mod interpret;
mod literal;
mod multiple;
mod operation;
mod place;
mod plan;
mod program;
mod ptx;
mod range;
mod rewrite;
mod scalar_type;
mod simplify;
mod statement;
mod text;
mod verify;
mod words;

pub use build::{Bf16, Element, F16, Float, Integer, Kernel, Mem, Number, Term, Val, Var};
pub use declaration::{
    Buffer, BufferId, Extent, Role, Scalar, ScalarId, Shared, SharedId, Value, ValueId, Variable, VariableId,
};
pub use interpret::{Absorbed, InterpretError, Interpretation, Outcome, ThreadOrder};
pub use literal::Literal;
pub use operation::{
    AtomicOp, Axis, BinaryOp, BlockVote, Builtin, CompareOp, Function, Memory, Op, Operand, Order, Scope,
    UnaryOp, WarpOp,
};
pub use place::Place;
pub use plan::{Binding, BindingPlan, DeviceLimits, LaunchPlan, LaunchRequest, PlanError};
pub use program::{Draft, Program};
pub use ptx::{Emitted, Layout, Parameter, ParameterKind, STATUS_BYTES, Status, Target};
pub use scalar_type::Type;
pub use statement::{BarrierScope, Block, STEP_TRAP, Statement, StatementKind, trap_text};
pub use text::TextError;
pub use verify::{MAX_DEPTH, Reason, VerifyError};
