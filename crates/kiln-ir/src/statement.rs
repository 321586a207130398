//! Statements: what a thread does, one after the other.

use crate::declaration::{ValueId, VariableId};
use crate::operation::{Memory, Op, Operand, Scope};
use crate::place::Place;
use crate::words::words;

/// Statements in order. A value or variable can be used behind the statement that brings it, to the end of its block.
pub type Block = Vec<Statement>;

/// One statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statement {
    /// What it says.
    pub kind: StatementKind,
    /// Where it stands.
    pub place: Place,
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

words! {
    /// Who meets at a barrier.
    pub enum BarrierScope {
        /// The threads of a block.
        Block = "block",
        /// The threads of all blocks. The launch must be cooperative.
        Grid = "grid",
    }
}

/// What a statement says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StatementKind {
    /// Computes a value.
    Let {
        /// Its name to the end of the block.
        value: ValueId,
        /// How it is computed.
        op: Op,
    },
    /// Brings a variable, with a first value or without. Without one it must be assigned before it is read.
    Declare {
        /// The variable.
        variable: VariableId,
        /// Its first value.
        initial: Option<Operand>,
    },
    /// Changes a variable.
    Assign {
        /// The variable.
        variable: VariableId,
        /// Its new value.
        value: Operand,
    },
    /// Writes an element; where the index is out of range nothing happens. The index is an integer of any type and a
    /// negative one is out of range. If two threads store to one element with nothing that orders them, one of the
    /// values stays.
    Store {
        /// What is written to.
        memory: Memory,
        /// Which element.
        index: Operand,
        /// What is written.
        value: Operand,
    },
    /// Does one or the other.
    If {
        /// A bool.
        condition: Operand,
        /// What is done if it is true.
        then: Block,
        /// What is done if it is false; may be empty.
        otherwise: Block,
    },
    /// Counts from `start` while the number is below `end`, and adds `step` each time. All three are taken once, before the first
    /// round. It ends instead of wrapping around when the next number would be too large for its type. A step below 1 traps
    /// with the code [`STEP_TRAP`], also where there would be no round.
    For {
        /// The number.
        value: ValueId,
        /// The first one.
        start: Operand,
        /// The first one that is not reached.
        end: Operand,
        /// What is added each time. A literal must be at least 1.
        step: Operand,
        /// What is done for each.
        body: Block,
    },
    /// Does something as long as a condition holds.
    While {
        /// What computes the condition; done before every round.
        condition: Block,
        /// The condition, a bool.
        test: Operand,
        /// What is done while it is true.
        body: Block,
    },
    /// Leaves the innermost loop.
    Break,
    /// Goes on with the next round of the innermost loop.
    Continue,
    /// This thread is done.
    Return,
    /// Waits until all threads of the block, or of the grid, have come here. What they wrote before is seen by all
    /// of them afterwards.
    Barrier(BarrierScope),
    /// What this thread did before is seen, by the threads of the scope, no later than what it does afterwards.
    Fence(Scope),
    /// Something is wrong, and a `u32` says what: the launch ends with an error that names the code and the thread, and what
    /// it wrote cannot be trusted.
    Trap(Operand),
}
