//! Groups of accesses to adjacent elements.
//!
//! `x[4 * i]`, `x[4 * i + 1]` and so on become one access of four elements, if nothing between them could change the
//! elements. Only accesses in one block are considered, for example those of a Rust loop around the builder.

use std::collections::HashMap;

use super::writer::Writer;
use crate::declaration::{BufferId, ValueId};
use crate::operation::{BinaryOp, MemoryOperand, Op, Operand};
use crate::scalar_type::Type;
use crate::statement::{Block, StatementKind};

/// Bytes of the largest access, and its elements.
const MAX_BYTES: u64 = 16;
const MAX_LANES: u64 = 4;
/// Statements that are looked at behind an access.
const REACH: usize = 64;

/// Adjacent elements of a buffer: `buffer[base + offset]` and those behind it. `base + offset` is a multiple of how many
/// they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Group {
    pub(super) buffer: BufferId,
    pub(super) base: ValueId,
    /// What is added to the base, wrapping in its type.
    pub(super) offset: u64,
    /// For each element the statement that accesses it, counted from the first one.
    pub(super) lanes: Vec<Option<usize>>,
}

/// An index as a value and what is added to it, wrapping in its type.
type Split = (ValueId, u64);

impl Writer<'_> {
    /// The loads that a load at the start of these statements begins a group of.
    pub(super) fn loads_beside(&self, statements: &Block, first: usize) -> Option<Group> {
        let StatementKind::Let { op: Op::Load { memory: MemoryOperand::Buffer(id), index }, .. } =
            &statements.get(first)?.kind
        else {
            return None;
        };
        let is_constant = !self.draft.buffers[id.index()].role.is_writable();
        let mut splits = HashMap::new();
        let start = self.split(&splits, *index)?;
        let mut members = vec![(first, start.1)];
        for (at, statement) in statements.iter().enumerate().skip(first + 1).take(REACH) {
            match &statement.kind {
                StatementKind::Let {
                    op: Op::Load { memory: MemoryOperand::Buffer(other), index }, ..
                } if other == id => {
                    let found = self.split(&splits, *index).filter(|split| split.0 == start.0);
                    members.extend(found.map(|split| (at, split.1)));
                }
                StatementKind::Let { value, op } if !op.has_effect() => self.learn(&mut splits, *value, op),
                StatementKind::Declare { .. } | StatementKind::Assign { .. } => {}
                StatementKind::Store { memory: MemoryOperand::Buffer(other), .. } if other != id => {}
                StatementKind::Store { memory: MemoryOperand::Shared(_), .. } => {}
                // An input does not change during a launch. In an unchecked buffer a condition may keep the index in
                // range.
                _ if is_constant && !self.draft.buffers[id.index()].unchecked => {}
                _ => break,
            }
        }
        // A vector load may include elements that the program does not name, unless another thread may write them.
        self.group(*id, start, &members)
            .filter(|group| is_constant || group.lanes.iter().all(Option::is_some))
    }

    /// The stores that a store at the start of these statements begins a group of; all of them, none twice.
    pub(super) fn stores_beside(&self, statements: &Block, first: usize) -> Option<Group> {
        let StatementKind::Store { memory: MemoryOperand::Buffer(id), index, .. } =
            &statements.get(first)?.kind
        else {
            return None;
        };
        let mut splits = HashMap::new();
        let start = self.split(&splits, *index)?;
        let mut members = vec![(first, start.1)];
        for (at, statement) in statements.iter().enumerate().skip(first + 1).take(REACH) {
            match &statement.kind {
                StatementKind::Let { op: Op::Load { memory: MemoryOperand::Buffer(other), .. }, .. }
                    if other == id =>
                {
                    break;
                }
                StatementKind::Let { value, op } if !op.has_effect() => self.learn(&mut splits, *value, op),
                StatementKind::Declare { .. } | StatementKind::Assign { .. } => {}
                StatementKind::Store { memory: MemoryOperand::Buffer(other), index, .. } if other == id => {
                    match self.split(&splits, *index).filter(|split| split.0 == start.0) {
                        Some(split) if members.iter().all(|member| member.1 != split.1) => {
                            members.push((at, split.1));
                        }
                        // Another store, maybe to the same element, which must come behind.
                        _ => break,
                    }
                }
                StatementKind::Store { .. } => {}
                _ => break,
            }
        }
        let group = self.group(*id, start, &members)?;
        group.lanes.iter().all(Option::is_some).then_some(group)
    }

    /// The members that lie in one aligned group with the first one.
    fn group(&self, buffer: BufferId, (base, offset): Split, members: &[(usize, u64)]) -> Option<Group> {
        let size = self.draft.buffers[buffer.index()].element.bytes();
        let most = MAX_LANES.min(MAX_BYTES / size).min(self.multiples.of(base));
        let group = |lanes: u64| {
            let start = offset - offset % lanes;
            let mut group = Group { buffer, base, offset: start, lanes: vec![None; lanes as usize] };
            for (at, offset) in members {
                if let Some(slot) =
                    offset.checked_sub(start).and_then(|lane| group.lanes.get_mut(lane as usize))
                {
                    slot.get_or_insert(*at);
                }
            }
            group
        };
        let is_worth = |group: &Group| {
            let wanted = group.lanes.iter().flatten().count();
            wanted + 1 >= group.lanes.len() && wanted > 1
        };
        [4, 2].into_iter().filter(|lanes| *lanes <= most).map(group).find(is_worth)
    }

    fn split(&self, splits: &HashMap<ValueId, Split>, index: Operand) -> Option<Split> {
        let Operand::Value(id) = index else { return None };
        if !matches!(self.ty(index), Type::U32 | Type::U64) {
            return None;
        }
        let known = splits.get(&id).copied();
        Some(known.unwrap_or_else(|| self.split_sum(splits, id, self.proof.definition(index))))
    }

    /// Remembers a sum that a later index may be.
    fn learn(&self, splits: &mut HashMap<ValueId, Split>, value: ValueId, op: &Op) {
        if matches!(self.ty(value.into()), Type::U32 | Type::U64) {
            let split = self.split_sum(splits, value, Some(op));
            splits.insert(value, split);
        }
    }

    fn split_sum(&self, splits: &HashMap<ValueId, Split>, value: ValueId, op: Option<&Op>) -> Split {
        let Some(Op::Binary { op: BinaryOp::Add, ty, a, b }) = op else {
            return (self.proof.same.first(value), 0);
        };
        let (inner, literal) = match (a, b) {
            (Operand::Value(_), Operand::Literal(literal)) => (*a, literal),
            (Operand::Literal(literal), Operand::Value(_)) => (*b, literal),
            _ => return (self.proof.same.first(value), 0),
        };
        match self.split(splits, inner) {
            Some((base, offset)) => (base, offset.wrapping_add(literal.bits()) & ty.mask()),
            None => (self.proof.same.first(value), 0),
        }
    }
}
