//! Statements of a program.

use crate::declaration::{ValueId, VariableId};
use crate::operation::{MemoryOperand, MemoryScope, Op, Operand, TileOp};
use crate::source_location::SourceLocation;
use crate::word_enum::word_enum;

/// Statements in order. A value or variable is in scope from the statement that defines it to the end of its block.
pub type Block = Vec<Statement>;

/// One statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statement {
    /// What it does.
    pub kind: StatementKind,
    /// Its source location.
    pub location: SourceLocation,
}

/// The code of the trap that a [`StatementKind::For`] with a step below 1 ends in.
pub const STEP_TRAP: u32 = u32::MAX;

/// The code of a trap as errors say it, with the reason where the language itself trapped.
pub fn trap_text(code: u32) -> String {
    match code {
        STEP_TRAP => format!("code {code} (the step of a `for` was below 1)"),
        _ => format!("code {code}"),
    }
}

word_enum! {
    /// The threads that a barrier synchronises.
    pub enum BarrierScope {
        /// The threads of a block.
        Block = "block",
        /// The threads of all blocks. The launch must be cooperative.
        Grid = "grid",
    }
}

/// What a statement does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StatementKind {
    /// Computes a value.
    Let {
        /// The value, in scope to the end of the block.
        value: ValueId,
        /// The operation.
        op: Op,
    },
    /// Declares a variable, with an initial value or without. Without one it must be assigned before it is read.
    Declare {
        /// The variable.
        variable: VariableId,
        /// Its initial value.
        initial: Option<Operand>,
    },
    /// Assigns a variable.
    Assign {
        /// The variable.
        variable: VariableId,
        /// Its new value.
        value: Operand,
    },
    /// Stores an element; a store out of range does nothing. The index is an integer of any type, and a negative index
    /// is out of range. If two threads store to one element and nothing orders the stores, one of the values remains.
    Store {
        /// The buffer or shared memory.
        memory: MemoryOperand,
        /// The index of the element.
        index: Operand,
        /// The value to store.
        value: Operand,
    },
    /// Executes one of two blocks.
    If {
        /// A bool.
        condition: Operand,
        /// The block for true.
        then: Block,
        /// The block for false; may be empty.
        otherwise: Block,
    },
    /// Counts from `start` while the counter is below `end`, and adds `step` after each iteration. All three are
    /// evaluated once, before the first iteration. The loop ends instead of wrapping around when the next counter would
    /// not fit its type. A step below 1 traps with the code [`STEP_TRAP`], even if there would be no iteration.
    For {
        /// The number.
        value: ValueId,
        /// The first one.
        start: Operand,
        /// The bound, which the counter does not reach.
        end: Operand,
        /// What is added after each iteration. A literal must be at least 1.
        step: Operand,
        /// The body.
        body: Block,
    },
    /// Repeats a body while a condition holds.
    While {
        /// Computes the condition before every iteration.
        condition: Block,
        /// The condition, a bool.
        test: Operand,
        /// The body.
        body: Block,
    },
    /// Leaves the innermost loop.
    Break,
    /// Continues with the next iteration of the innermost loop.
    Continue,
    /// Ends the thread.
    Return,
    /// Waits until all threads of the block, or of the grid, have reached the barrier. All of them then see what each
    /// wrote before it.
    Barrier(BarrierScope),
    /// Orders memory: threads of the scope see what this thread did before the fence no later than what it does after
    /// it.
    Fence(MemoryScope),
    /// An operation of the warp on a tile. The verifier proves that all threads of the warp execute it.
    Tile(TileOp),
    /// Ends the launch with an error that names the code, a `u32`, and the thread. What the launch wrote is then
    /// unreliable.
    Trap(Operand),
}
