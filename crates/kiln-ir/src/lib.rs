//! Typed kernel programs: kernels that are written in Rust or as text and give the same bits on every device, also at
//! the edges of their operations.
//!
//! A [`Program`] is built, parsed, verified, printed, interpreted and emitted as PTX here. This crate knows no device
//! and contains no unsafe code; `kiln-program` launches programs.
//!
//! # The contract
//!
//! - A [`Program`] was verified: its types match, every value is in scope where it is used, every variable is assigned
//!   before it is read, and every barrier is reached by all its threads. Anything else is refused with the statement
//!   and the reason ([`VerifyError`]).
//! - Every operation has a type and a defined result for every operand, documented at [`Op`], [`UnaryOp`],
//!   [`BinaryOp`], [`CompareOp`], [`MathFunction`], [`AtomicOp`], [`WarpOp`], [`TileOp`], [`StatementKind`]. A load out of
//!   range gives 0, a store or an atomic out of range does nothing.
//! - [`Interpreter`] defines the result. PTX that [`Program::emit`] makes for any [`PtxTarget`] gives the same bits.
//!   Excepted are the bits of a NaN, which are not defined, sums that tensor cores round in their own way
//!   ([`TileOp::MultiplyAdd`] says how far they may be off), and programs with races, which running the interpreter in
//!   both thread orders shows.
//! - The [`Display`](std::fmt::Display) of a program is its text form, which parses to an equal program.
//! - A program accesses nothing but its buffers, unless one is declared `unchecked`. So launching one is safe if its
//!   buffers have the lengths that the launch passes, no written buffer overlaps another, and the parameters are packed
//!   as [`ParameterLayout`] says.
//! - Nothing panics on bad input. A text that is cut anywhere is an error with a line and a column.
//!
//! # The model
//!
//! ```text
//!   Rust closure ── KernelBuilder ──┐                        ┌── Interpreter ──▶ InterpretOutcome
//!                            ├─▶ Draft ──▶ Program ───┤
//!   .kir text ───── parser ──┘       verify           ├── emit(PtxTarget) ────▶ Emitted: PTX, ParameterLayout
//!                                                     ├── Display ─────────▶ .kir text
//!                                                     └── BindingPlan, LaunchPlan
//!
//!   Draft ─┬─ buffers, scalars, shared memory, tiles             (Buffer, ScalarParameter, Shared, Tile)
//!          ├─ values and variables, with their types             (Value, Variable)
//!          └─ body: statements in blocks                         (Statement, StatementKind)
//!               └─ let value = operation on values and literals  (Op, Operand, Literal)
//! ```
//!
//! ```
//! use kiln_ir::{Interpreter, Program, PtxTarget};
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
//! Interpreter::new([1, 1, 1]).run(&program, &[], &mut buffers)?;
//! assert_eq!(buffers[1], 25.0f32.to_le_bytes());
//!
//! assert_eq!(Program::parse(&program.to_string())?, program);
//! assert!(program.emit(PtxTarget::new(90).unwrap()).text.contains(".entry sum_of_squares"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Types in reading order: [`Program`], [`KernelBuilder`] with [`Val`], [`Var`], [`Mem`] and [`TileVar`]; [`Type`], [`Literal`]; [`Draft`],
//! [`Statement`], [`Op`]; [`Interpreter`]; [`PtxTarget`], [`Emitted`], [`ParameterLayout`]; [`BindingPlan`], [`LaunchPlan`].
//!
//! # What it does not do
//!
//! It does not report races, and it optimises only constants, dead code and index checks: `ptxas` does the rest. The
//! language has no function calls, no pointers and no structures. Its products of matrices are those of one warp:
//! `wgmma` and asynchronous copies are not emitted.

#![forbid(unsafe_code)]

mod builder;
mod declaration;
mod divisibility;
mod evaluate;
mod interpret;
mod literal;
mod math_function;
mod operation;
mod plan;
mod program;
mod ptx;
mod rewrite;
mod scalar_type;
mod simplify;
mod source_location;
mod statement;
mod text;
mod value_range;
mod verify;
mod word_enum;

pub use builder::{
    Bf16, F16, IntoOperand, KernelBuilder, KernelElement, KernelFactor, KernelFloat, KernelInteger,
    KernelNumber, MatrixRef, Mem, TileVar, Val, Var,
};
pub use declaration::{
    Buffer, BufferId, Extent, Role, ScalarId, ScalarParameter, Shared, SharedId, Tile, TileId, Value,
    ValueId, Variable, VariableId,
};
pub use interpret::{InterpretError, InterpretOutcome, Interpreter, OutOfRange, ThreadOrder};
pub use literal::Literal;
pub use operation::{
    AtomicOp, Axis, BinaryOp, BlockVote, Builtin, CompareOp, MathFunction, MatrixLayout, MatrixOperand,
    MemoryOperand, MemoryOrder, MemoryScope, Op, Operand, TileOp, UnaryOp, WarpOp,
};
pub use plan::{Binding, BindingPlan, DeviceLimits, LaunchPlan, LaunchRequest, PlanError};
pub use program::{Draft, Program};
pub use ptx::{
    Emitted, EntryParameter, EntryParameterKind, ParameterLayout, PtxTarget, STATUS_BYTES, TrapStatus,
};
pub use scalar_type::Type;
pub use source_location::SourceLocation;
pub use statement::{BarrierScope, Block, STEP_TRAP, Statement, StatementKind, trap_text};
pub use text::TextError;
pub use verify::{MAX_DEPTH, VerifyError, VerifyReason};
