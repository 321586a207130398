//! What the conditions around a statement say about indices.
//!
//! Inside `if i < len(x) { ... }`, and behind `if i >= len(x) { return; }`, the index `i` is in range of `x` and of every
//! buffer that is as long as `x`, and need not be checked again. Values do not change, so such a fact holds to the end
//! of its block.

use super::writer::Writer;
use crate::declaration::{BufferId, Extent, ValueId};
use crate::operation::{BinaryOp, CompareOp, Memory, Op, Operand, UnaryOp};
use crate::program::Draft;
use crate::scalar_type::Type;
use crate::statement::{Block, StatementKind};

/// Which values are in range of which buffers, at the present place.
#[derive(Debug, Default)]
pub(super) struct Proof {
    /// How the values were computed that conditions are made of.
    definitions: Vec<Option<Op>>,
    facts: Vec<(ValueId, BufferId)>,
}

impl Proof {
    pub(super) fn new(draft: &Draft) -> Self {
        Self { definitions: vec![None; draft.values.len()], facts: Vec::new() }
    }

    /// Remembers how a value was computed, if a condition can be made of it.
    pub(super) fn define(&mut self, value: ValueId, op: &Op) {
        let useful = match op {
            Op::Compare { ty, .. } => *ty == Type::U64,
            Op::Binary { ty, .. } | Op::Unary { ty, .. } => *ty == Type::Bool,
            Op::Length(Memory::Buffer(_)) => true,
            _ => false,
        };
        if let Some(slot) = self.definitions.get_mut(value.index()).filter(|_| useful) {
            *slot = Some(op.clone());
        }
    }

    fn definition(&self, operand: Operand) -> Option<&Op> {
        match operand {
            Operand::Value(id) => self.definitions.get(id.index())?.as_ref(),
            Operand::Literal(_) => None,
        }
    }

    /// Adds what follows where a condition holds, or does not.
    fn assume(&mut self, draft: &Draft, condition: Operand, holds: bool) {
        let Some(op) = self.definition(condition).cloned() else { return };
        match op {
            Op::Unary { op: UnaryOp::Not, a, .. } => self.assume(draft, a, !holds),
            Op::Binary { op, a, b, .. } if op == (if holds { BinaryOp::And } else { BinaryOp::Or }) => {
                self.assume(draft, a, holds);
                self.assume(draft, b, holds);
            }
            Op::Compare { op, a, b, .. } => {
                let (index, bound) = match (op, holds) {
                    (CompareOp::Lt, true) | (CompareOp::Ge, false) => (a, b),
                    (CompareOp::Gt, true) | (CompareOp::Le, false) => (b, a),
                    _ => return,
                };
                if let (Operand::Value(index), Some(Op::Length(Memory::Buffer(id)))) =
                    (index, self.definition(bound))
                {
                    self.facts.push((index, sized(draft, *id)));
                }
            }
            _ => {}
        }
    }

    fn holds(&self, draft: &Draft, buffer: BufferId, index: Operand) -> bool {
        let Operand::Value(index) = index else { return false };
        self.facts.contains(&(index, sized(draft, buffer)))
    }
}

/// The buffer whose length a buffer has: the one it is like, or itself.
pub(super) fn sized(draft: &Draft, id: BufferId) -> BufferId {
    match draft.buffers.get(id.index()).map(|buffer| buffer.extent) {
        Some(Extent::Like(other)) => other,
        _ => id,
    }
}

impl Writer<'_> {
    /// Whether an index needs no check, by its range or by a condition around it.
    pub(super) fn is_proven(&self, memory: Memory, index: Operand) -> bool {
        let by_condition = match memory {
            Memory::Buffer(id) => self.proof.holds(self.draft, id, index),
            Memory::Shared(_) => false,
        };
        by_condition || self.ranges.is_inside(self.draft, memory, index)
    }

    /// Writes a block in which a condition holds, or does not.
    pub(super) fn block_where(&mut self, condition: Operand, holds: bool, block: &Block) {
        let facts = self.proof.facts.len();
        self.proof.assume(self.draft, condition, holds);
        self.block(block);
        self.proof.facts.truncate(facts);
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
            self.proof.assume(self.draft, condition, false);
        }
    }

    /// How many facts there are; those that come later end with their block.
    pub(super) fn known(&self) -> usize {
        self.proof.facts.len()
    }

    pub(super) fn forget(&mut self, known: usize) {
        self.proof.facts.truncate(known);
    }
}
