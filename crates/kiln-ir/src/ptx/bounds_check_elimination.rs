//! Index checks that the conditions around a statement make unnecessary.
//!
//! Inside `if i < len(x) { ... }`, in the body of `while i < len(x) { ... }`, and behind `if i >= len(x) { return; }`, the
//! index `i` is in range of `x` and of every buffer that is as long as `x`, and need not be checked again; where
//! `i + 2` is in range and cannot wrap, so are `i + 1` and `i`. Values do not change, so such a fact holds to the end of its
//! block.

use super::value_numbering::ValueNumbering;
use super::writer::Writer;
use crate::declaration::{BufferId, Extent, ValueId};
use crate::operation::{BinaryOp, CompareOp, MemoryOperand, Op, Operand, UnaryOp};
use crate::program::Draft;
use crate::scalar_type::Type;
use crate::statement::{Block, StatementKind};
use crate::value_range::Ranges;

/// Which values are in range of which buffers, at the present place.
#[derive(Debug)]
pub(super) struct IndexProof {
    /// How the values were computed that conditions and indices are made of.
    definitions: Vec<Option<Op>>,
    pub(super) same: ValueNumbering,
    facts: Vec<Fact>,
}

/// A value plus an offset is below the length of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Fact {
    sum: Sum,
    buffer: BufferId,
}

/// A value and what is added to it, without wrapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sum {
    pub(super) value: ValueId,
    pub(super) offset: i128,
}

impl IndexProof {
    pub(super) fn new(draft: &Draft) -> Self {
        Self {
            definitions: vec![None; draft.values.len()],
            same: ValueNumbering::new(draft),
            facts: Vec::new(),
        }
    }

    /// Remembers how a value was computed, if a condition or an index can be made of it.
    pub(super) fn define(&mut self, value: ValueId, op: &Op) {
        self.same.define(value, op);
        let useful = match op {
            Op::Compare { ty, .. } => *ty == Type::U64,
            Op::Unary { ty, .. } => *ty == Type::Bool,
            Op::Binary { ty, .. } => *ty == Type::Bool || ty.is_integer(),
            Op::Convert { from, to, .. } => from.is_integer() && *to == Type::U64,
            Op::Length(MemoryOperand::Buffer(_)) => true,
            _ => false,
        };
        if let Some(slot) = self.definitions.get_mut(value.index()).filter(|_| useful) {
            *slot = Some(op.clone());
        }
    }

    pub(super) fn definition(&self, operand: Operand) -> Option<&Op> {
        match operand {
            Operand::Value(id) => self.definitions.get(self.same.first(id).index())?.as_ref(),
            Operand::Literal(_) => None,
        }
    }

    /// An index as a value and an offset. The result of an addition that could wrap is a value without an offset.
    fn sum(&self, ranges: &Ranges, index: ValueId) -> Sum {
        let mut sum = Sum { value: self.same.first(index), offset: 0 };
        while let Some(Op::Binary { op: BinaryOp::Add, a, b, .. }) = self.definition(sum.value.into())
            && ranges.is_known(sum.value)
            && let Some((value, offset)) = with_literal(*a, *b)
        {
            sum = Sum { value: self.same.first(value), offset: sum.offset + offset };
        }
        sum
    }

    /// Adds what follows where a condition holds, or does not.
    fn assume(&mut self, draft: &Draft, ranges: &Ranges, condition: Operand, holds: bool) {
        let Some(op) = self.definition(condition).cloned() else { return };
        match op {
            Op::Unary { op: UnaryOp::Not, a, .. } => self.assume(draft, ranges, a, !holds),
            Op::Binary { op, a, b, .. } if op == (if holds { BinaryOp::And } else { BinaryOp::Or }) => {
                self.assume(draft, ranges, a, holds);
                self.assume(draft, ranges, b, holds);
            }
            Op::Compare { op, a, b, .. } => {
                let (index, bound) = match (op, holds) {
                    (CompareOp::Lt, true) | (CompareOp::Ge, false) => (a, b),
                    (CompareOp::Gt, true) | (CompareOp::Le, false) => (b, a),
                    _ => return,
                };
                let Some(Op::Length(MemoryOperand::Buffer(id))) = self.definition(bound) else { return };
                let buffer = sized(draft, *id);
                if let Operand::Value(index) = index {
                    self.facts.push(Fact { sum: self.sum(ranges, index), buffer });
                }
                // A smaller integer that was converted is in range if the result is: what is negative became too large.
                if let Some(Op::Convert { a: Operand::Value(narrow), .. }) = self.definition(index) {
                    self.facts.push(Fact { sum: self.sum(ranges, *narrow), buffer });
                }
            }
            _ => {}
        }
    }

    fn holds(&self, draft: &Draft, ranges: &Ranges, buffer: BufferId, index: Operand) -> bool {
        match index {
            Operand::Value(index) => self.holds_sum(draft, ranges, buffer, self.sum(ranges, index)),
            Operand::Literal(_) => false,
        }
    }

    fn holds_sum(&self, draft: &Draft, ranges: &Ranges, buffer: BufferId, index: Sum) -> bool {
        let buffer = sized(draft, buffer);
        // Between zero and what is in range; a negative value would be neither.
        let is_natural = ranges.is_natural(draft, index.value.into());
        self.facts.iter().any(|fact| {
            let is_between =
                is_natural && fact.sum.value == index.value && (0..=fact.sum.offset).contains(&index.offset);
            fact.buffer == buffer && (fact.sum == index || is_between)
        })
    }
}

/// A value and a literal that are added, in either order.
fn with_literal(a: Operand, b: Operand) -> Option<(ValueId, i128)> {
    match (a, b) {
        (Operand::Value(value), Operand::Literal(literal))
        | (Operand::Literal(literal), Operand::Value(value)) => Some((value, literal.as_integer())),
        _ => None,
    }
}

/// The buffer whose length a buffer has: the one it is like, or itself.
pub(super) fn sized(draft: &Draft, id: BufferId) -> BufferId {
    match draft.buffers.get(id.index()).map(|buffer| buffer.extent) {
        Some(Extent::Like(other)) => other,
        _ => id,
    }
}

/// How much is known at a place.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known {
    facts: usize,
    operations: usize,
}

impl Writer<'_> {
    /// Whether an index needs no check, by its range or by a condition around it.
    pub(super) fn is_proven(&self, memory: MemoryOperand, index: Operand) -> bool {
        let by_condition = match memory {
            MemoryOperand::Buffer(id) => self.proof.holds(self.draft, &self.ranges, id, index),
            MemoryOperand::Shared(_) => false,
        };
        by_condition || self.ranges.is_inside(self.draft, memory, index)
    }

    /// Whether a value plus an offset is in range of a buffer by a condition around.
    pub(super) fn is_sum_proven(&self, buffer: BufferId, value: ValueId, offset: u64) -> bool {
        let sum = Sum { value: self.proof.same.first(value), offset: i128::from(offset) };
        self.proof.holds_sum(self.draft, &self.ranges, buffer, sum)
    }

    /// From here on a condition holds, or does not.
    pub(super) fn assume(&mut self, condition: Operand, holds: bool) {
        self.proof.assume(self.draft, &self.ranges, condition, holds);
    }

    /// Behind an `if` whose block never ends, its condition does not hold.
    pub(super) fn assume_after(&mut self, condition: Operand, then: &Block) {
        let leaves = then.last().is_some_and(|statement| {
            matches!(
                statement.kind,
                StatementKind::Return
                    | StatementKind::Break
                    | StatementKind::Continue
                    | StatementKind::Trap(_)
            )
        });
        if leaves {
            self.assume(condition, false);
        }
    }

    /// How much is known here; what comes later ends with its block.
    pub(super) fn known(&self) -> Known {
        Known { facts: self.proof.facts.len(), operations: self.proof.same.known() }
    }

    pub(super) fn forget(&mut self, known: Known) {
        self.proof.facts.truncate(known.facts);
        self.proof.same.forget(known.operations);
    }
}
