//! Accesses of two or four adjacent elements at once.
//!
//! The address of a buffer is aligned to its elements only, and the last group may reach beyond the end. So the kernel
//! checks both and accesses the elements one by one where needed; the usual case is one access with one check instead
//! of four.

use std::collections::HashMap;

use super::adjacent_accesses::Group;
use super::memory::{Index, loaded_class};
use super::parameter_layout::memory_type;
use super::register::{Class, Register};
use super::writer::{Writer, ins};
use crate::declaration::ValueId;
use crate::operation::{MemoryOperand, Op};
use crate::statement::{Block, StatementKind};

/// Stores of a block that wait for the last of their group.
#[derive(Debug, Default)]
pub(super) struct Stores {
    /// The groups, by the last store of each.
    groups: HashMap<usize, Group>,
    /// Those that are written with a later one.
    waiting: Vec<usize>,
}

impl Writer<'_> {
    /// Does what a statement needs before it is written. Whether it is written with another one.
    pub(super) fn gather(&mut self, block: &Block, at: usize, stores: &mut Stores) -> bool {
        match block.get(at).map(|statement| &statement.kind) {
            Some(StatementKind::Let { value, op: Op::Load { .. } }) if !self.loaded.contains_key(value) => {
                if let Some(group) = self.loads_beside(block, at) {
                    self.load_group(block, &group);
                }
                false
            }
            Some(StatementKind::Store { .. }) => self.gather_store(block, at, stores),
            _ => false,
        }
    }

    fn gather_store(&mut self, block: &Block, at: usize, stores: &mut Stores) -> bool {
        if let Some(group) = stores.groups.remove(&at) {
            self.store_group(block, &group);
            return true;
        }
        if stores.waiting.contains(&at) {
            return true;
        }
        let Some(group) = self.stores_beside(block, at) else { return false };
        let Some(last) = group.lanes.iter().flatten().max().copied() else { return false };
        // A group that another one begins inside of would be written out of order.
        if stores.groups.keys().any(|end| *end > at) {
            return false;
        }
        stores.waiting.extend(group.lanes.iter().flatten().filter(|store| **store != last));
        stores.groups.insert(last, group);
        true
    }

    /// The index of each element of a group, the first one first.
    fn indices(&mut self, group: &Group) -> Vec<Index> {
        let base = self.register(group.base.into());
        let lanes = 0..group.lanes.len() as u64;
        lanes
            .map(|lane| match group.offset + lane {
                0 if base.class == Class::B32 => Index::Narrow(base.to_string()),
                0 => Index::Wide(base.to_string()),
                more if base.class == Class::B32 => {
                    let more = (more as u32).to_string();
                    Index::Narrow(
                        self.compute(Class::B32, "add.u32", &[&base.to_string(), &more]).to_string(),
                    )
                }
                more => {
                    let more = (more as i64).to_string();
                    Index::Wide(self.compute(Class::B64, "add.u64", &[&base.to_string(), &more]).to_string())
                }
            })
            .collect()
    }

    /// Whether the whole group can be accessed at once.
    fn is_whole(&mut self, group: &Group, last: &Index) -> Register {
        let buffer = &self.draft.buffers[group.buffer.index()];
        let bytes = buffer.element.bytes() * group.lanes.len() as u64;
        // Without checks every element that the program names is in range, but no other.
        let unchecked = buffer.unchecked && group.lanes.iter().all(Option::is_some);
        let aligned = self.aligned(group.buffer, bytes);
        let reach = group.offset + (group.lanes.len() as u64 - 1);
        match unchecked || self.is_sum_proven(group.buffer, group.base, reach) {
            true => aligned,
            false => self.inside(group.buffer, last, Some(aligned)),
        }
    }

    fn load_group(&mut self, block: &Block, group: &Group) {
        let memory = MemoryOperand::Buffer(group.buffer);
        let ty = self.draft.buffers[group.buffer.index()].element;
        let indices = self.indices(group);
        let Some(last) = indices.last() else { return };
        let whole = self.is_whole(group, last);
        let registers: Vec<Register> = indices.iter().map(|_| self.fresh(loaded_class(ty))).collect();
        let (at_once, end) = (self.label(), self.label());
        ins!(self, "@{whole} bra {at_once}");
        for (lane, index) in indices.iter().enumerate() {
            let Some(at) = group.lanes[lane] else { continue };
            self.locate(block[at].location);
            let reach = group.offset + lane as u64;
            let is_proven = self.is_sum_proven(group.buffer, group.base, reach);
            let spot = self.spot_at(group.buffer, index, is_proven);
            self.load_to(registers[lane], memory, &spot);
        }
        ins!(self, "bra {end}");
        self.place(at_once);
        let spot = self.spot_at(group.buffer, &indices[0], true);
        let name = self.load_name(memory);
        let (lanes, list) = (registers.len(), list(registers.iter()));
        ins!(self, "{name}.v{lanes}.{} {list}, {}", memory_type(ty), spot.address);
        self.place(end);
        let mut first: Vec<(usize, Register)> = Vec::new();
        for (lane, at) in group.lanes.iter().enumerate() {
            first.extend(at.map(|at| (at, self.as_loaded(ty, registers[lane]))));
        }
        for (at, register) in first {
            if let StatementKind::Let { value, .. } = &block[at].kind {
                self.loaded.insert(*value, register);
            }
        }
    }

    fn store_group(&mut self, block: &Block, group: &Group) {
        let ty = self.draft.buffers[group.buffer.index()].element;
        let stores: Vec<_> = group
            .lanes
            .iter()
            .filter_map(|at| match &block[(*at)?].kind {
                StatementKind::Store { value, .. } => Some(*value),
                _ => None,
            })
            .collect();
        let values: Vec<String> = stores.into_iter().map(|value| self.as_stored(ty, value)).collect();
        let indices = self.indices(group);
        let Some(last) = indices.last() else { return };
        let whole = self.is_whole(group, last);
        let (at_once, end) = (self.label(), self.label());
        ins!(self, "@{whole} bra {at_once}");
        for (lane, (index, value)) in indices.iter().zip(&values).enumerate() {
            if let Some(at) = group.lanes[lane] {
                self.locate(block[at].location);
            }
            let is_proven = self.is_sum_proven(group.buffer, group.base, group.offset + lane as u64);
            let spot = self.spot_at(group.buffer, index, is_proven);
            ins!(self, "{}st.global.{} {}, {value}", spot.guard, memory_type(ty), spot.address);
        }
        ins!(self, "bra {end}");
        self.place(at_once);
        let spot = self.spot_at(group.buffer, &indices[0], true);
        let (lanes, list) = (values.len(), list(values.iter()));
        ins!(self, "st.global.v{lanes}.{} {}, {list}", memory_type(ty), spot.address);
        self.place(end);
    }

    /// What a load of a group gave, if this value is one.
    pub(super) fn loaded(&self, value: ValueId) -> Option<Register> {
        self.loaded.get(&value).copied()
    }
}

/// Registers as a vector.
fn list(items: impl Iterator<Item = impl ToString>) -> String {
    let items: Vec<String> = items.map(|item| item.to_string()).collect();
    format!("{{{}}}", items.join(", "))
}
