//! Typed kernel programs.

#![forbid(unsafe_code)]

mod build;
mod declaration;
mod evaluate;
mod function;
mod interpret;
mod literal;
mod operation;
mod place;
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
pub use program::{Draft, Program};
pub use ptx::{Emitted, Layout, Parameter, ParameterKind, STATUS_BYTES, Status, Target};
pub use scalar_type::Type;
pub use statement::{BarrierScope, Block, Statement, StatementKind};
pub use text::TextError;
pub use verify::{MAX_DEPTH, Reason, VerifyError};
