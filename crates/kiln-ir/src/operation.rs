//! Operations, each with its type.

mod arithmetic;
mod memory;
mod thread_index;
mod tile;
mod warp_and_block;

pub use arithmetic::{BinaryOp, CompareOp, MathFunction, UnaryOp};
pub use memory::{AtomicOp, MemoryOperand, MemoryOrder, MemoryScope};
pub use thread_index::{Axis, Builtin};
pub(crate) use tile::{FRAGMENT_COLUMNS, FRAGMENT_ROWS, Factor};
pub use tile::{MatrixLayout, MatrixOperand, TileOp};
pub use warp_and_block::{BlockVote, WarpOp};

use crate::declaration::{ScalarId, ValueId, VariableId};
use crate::literal::Literal;
use crate::scalar_type::Type;

/// An operand: a value computed before, or a literal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operand {
    /// A value that is in scope.
    Value(ValueId),
    /// A constant.
    Literal(Literal),
}

impl From<Literal> for Operand {
    fn from(literal: Literal) -> Self {
        Self::Literal(literal)
    }
}

impl From<ValueId> for Operand {
    fn from(value: ValueId) -> Self {
        Self::Value(value)
    }
}

/// One operation. Its result is a [`Value`](crate::Value) that a `let` defines.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    /// An operation on one operand of type `ty`.
    Unary {
        /// Which.
        op: UnaryOp,
        /// The type it works on.
        ty: Type,
        /// Its operand.
        a: Operand,
    },
    /// A function of one float.
    Function {
        /// Which.
        function: MathFunction,
        /// The type it works on.
        ty: Type,
        /// Its operand.
        a: Operand,
    },
    /// An operation on two operands of type `ty`; shifts and rotations have a `u32` second.
    Binary {
        /// Which.
        op: BinaryOp,
        /// The type it works on.
        ty: Type,
        /// The first operand.
        a: Operand,
        /// The second.
        b: Operand,
    },
    /// A comparison of two operands of type `ty`; the result is a bool.
    Compare {
        /// Which.
        op: CompareOp,
        /// The type it works on.
        ty: Type,
        /// The first operand.
        a: Operand,
        /// The second.
        b: Operand,
    },
    /// `a` if the condition holds, otherwise `b`. Both operands are evaluated.
    Select {
        /// The type of the two.
        ty: Type,
        /// A bool.
        condition: Operand,
        /// What is chosen if it is true.
        a: Operand,
        /// What is chosen if it is false.
        b: Operand,
    },
    /// `a * b + c`, rounded once. Only for floats.
    Fma {
        /// The type it works on.
        ty: Type,
        /// The first factor.
        a: Operand,
        /// The second factor.
        b: Operand,
        /// What is added.
        c: Operand,
    },
    /// The same number in another type.
    ///
    /// - Integer to integer keeps the low bits; a signed source is sign-extended to a wider type.
    /// - Anything to a float rounds once to nearest, ties to even; too large a number becomes infinity, and a NaN stays
    ///   a NaN.
    /// - Float to integer truncates toward zero and saturates; NaN becomes 0.
    /// - A number is true when it is not zero, so NaN is true and `-0.0` is false. True is 1, false is 0.
    Convert {
        /// The type of the operand.
        from: Type,
        /// The type of the result.
        to: Type,
        /// The operand.
        a: Operand,
    },
    /// The same bits as another type of the same size. Not for bools. Which NaN an operation gives is not defined, so
    /// neither are the bits of one.
    Bitcast {
        /// The type of the operand.
        from: Type,
        /// The type of the result.
        to: Type,
        /// The operand.
        a: Operand,
    },
    /// An index or a size of the launch.
    Builtin(Builtin),
    /// A scalar parameter.
    Parameter(ScalarId),
    /// The current value of a variable.
    Read(VariableId),
    /// An element of a buffer or of shared memory; 0 if the index is out of range. The index is an integer of any type,
    /// and a negative index is out of range.
    Load {
        /// The buffer or shared memory.
        memory: MemoryOperand,
        /// The index of the element.
        index: Operand,
    },
    /// The number of elements of a buffer or shared memory, as a `u64`.
    Length(MemoryOperand),
    /// Updates an element atomically; the result is its previous value. If the index is out of range nothing happens
    /// and the result is 0.
    Atomic {
        /// How the element is updated.
        op: AtomicOp,
        /// The buffer or shared memory.
        memory: MemoryOperand,
        /// The index of the element.
        index: Operand,
        /// The operand of the update.
        value: Operand,
        /// For [`AtomicOp::CompareExchange`]: the value that the element must have for `value` to be written.
        expected: Option<Operand>,
        /// The memory order.
        order: MemoryOrder,
        /// The scope of that order.
        scope: MemoryScope,
    },
    /// A warp-level operation. The verifier proves that all threads of the warp execute it.
    Warp {
        /// What.
        op: WarpOp,
        /// The type of the operand.
        ty: Type,
        /// The operand of this lane.
        a: Operand,
        /// For shuffles: the lane or the distance, a `u32`.
        by: Option<Operand>,
    },
    /// A barrier of the block with a vote. The verifier proves that all threads of the block execute it.
    BlockVote {
        /// The kind of vote.
        vote: BlockVote,
        /// The vote of this thread.
        a: Operand,
    },
}

impl Op {
    /// The operands, in the order in which the text form has them.
    pub fn operands(&self) -> Vec<Operand> {
        match self {
            Self::Unary { a, .. }
            | Self::Function { a, .. }
            | Self::Convert { a, .. }
            | Self::Bitcast { a, .. }
            | Self::BlockVote { a, .. } => vec![*a],
            Self::Binary { a, b, .. } | Self::Compare { a, b, .. } => vec![*a, *b],
            Self::Select { condition, a, b, .. } => vec![*condition, *a, *b],
            Self::Fma { a, b, c, .. } => vec![*a, *b, *c],
            Self::Builtin(_) | Self::Parameter(_) | Self::Read(_) | Self::Length(_) => Vec::new(),
            Self::Load { index, .. } => vec![*index],
            Self::Atomic { index, expected, value, .. } => {
                [*index].into_iter().chain(*expected).chain([*value]).collect()
            }
            Self::Warp { a, by, .. } => [*a].into_iter().chain(*by).collect(),
        }
    }

    /// The same with other operands, given in the same order. Operands that are missing stay as they are.
    pub(crate) fn map_operands(&self, mut map: impl FnMut(Operand) -> Operand) -> Self {
        let mut op = self.clone();
        match &mut op {
            Self::Unary { a, .. }
            | Self::Function { a, .. }
            | Self::Convert { a, .. }
            | Self::Bitcast { a, .. }
            | Self::BlockVote { a, .. }
            | Self::Load { index: a, .. } => *a = map(*a),
            Self::Binary { a, b, .. } | Self::Compare { a, b, .. } => [*a, *b] = [map(*a), map(*b)],
            Self::Select { condition: a, a: b, b: c, .. } | Self::Fma { a, b, c, .. } => {
                [*a, *b, *c] = [map(*a), map(*b), map(*c)];
            }
            Self::Builtin(_) | Self::Parameter(_) | Self::Read(_) | Self::Length(_) => {}
            Self::Atomic { index, expected, value, .. } => {
                *index = map(*index);
                *expected = expected.map(&mut map);
                *value = map(*value);
            }
            Self::Warp { a, by, .. } => {
                *a = map(*a);
                *by = by.map(&mut map);
            }
        }
        op
    }

    /// Whether it has an effect besides its result, or synchronises with other threads.
    pub fn has_effect(&self) -> bool {
        matches!(self, Self::Atomic { .. } | Self::Warp { .. } | Self::BlockVote { .. })
    }
}
