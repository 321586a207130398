//! Value numbering: which values are equal.
//!
//! A program that says `x[i + 1]` twice computes two values; a proof about one of them holds for the other. Two values
//! are the same if they are computed by the same operation from the same values, or read from a variable that was not
//! assigned in between. Equalities hold to the end of their block.

use std::collections::HashMap;

use crate::declaration::{ValueId, VariableId};
use crate::operation::{Op, Operand};
use crate::program::Draft;
use crate::statement::{Block, StatementKind};

/// For each value the first equal one.
#[derive(Debug)]
pub(super) struct ValueNumbering {
    first: Vec<ValueId>,
    computed: HashMap<Op, ValueId>,
    /// The keys of `computed` in the order they came, to take them out again.
    order: Vec<Op>,
    /// What each variable holds, where a value is known for it.
    held: Vec<Option<ValueId>>,
}

impl ValueNumbering {
    pub(super) fn new(draft: &Draft) -> Self {
        Self {
            first: (0..draft.values.len() as u32).map(ValueId).collect(),
            computed: HashMap::new(),
            order: Vec::new(),
            held: vec![None; draft.variables.len()],
        }
    }

    /// The first equal value.
    pub(super) fn first(&self, value: ValueId) -> ValueId {
        self.first.get(value.index()).copied().unwrap_or(value)
    }

    /// Records how a value is computed.
    pub(super) fn define(&mut self, value: ValueId, op: &Op) {
        if let Op::Read(variable) = op {
            match self.held.get_mut(variable.index()) {
                Some(Some(held)) => self.first[value.index()] = *held,
                Some(held) => *held = Some(value),
                None => {}
            }
            return;
        }
        if op.has_effect() || matches!(op, Op::Load { .. }) {
            return;
        }
        let key = op.map_operands(|operand| match operand {
            Operand::Value(id) => Operand::Value(self.first(id)),
            Operand::Literal(_) => operand,
        });
        match self.computed.get(&key) {
            Some(known) => self.first[value.index()] = *known,
            None => {
                self.computed.insert(key.clone(), value);
                self.order.push(key);
            }
        }
    }

    /// Records the value that a variable is assigned.
    pub(super) fn assign(&mut self, variable: VariableId, operand: Operand) {
        let value = match operand {
            Operand::Value(id) => Some(self.first(id)),
            Operand::Literal(_) => None,
        };
        if let Some(held) = self.held.get_mut(variable.index()) {
            *held = value;
        }
    }

    /// How much is known of operations; what comes later can be forgotten.
    pub(super) fn known(&self) -> usize {
        self.order.len()
    }

    pub(super) fn forget(&mut self, known: usize) {
        for key in self.order.drain(known..) {
            self.computed.remove(&key);
        }
    }

    /// The known values of the variables, to restore later.
    pub(super) fn held(&self) -> Vec<Option<ValueId>> {
        self.held.clone()
    }

    /// Restores the known values of the variables, except of those that a block may have assigned.
    pub(super) fn rejoin(&mut self, held: &[Option<ValueId>], blocks: &[&Block]) {
        self.held.clear();
        self.held.extend_from_slice(held);
        for block in blocks {
            self.lose(block);
        }
    }

    /// Drops the known values of the variables that a block may assign.
    fn lose(&mut self, block: &Block) {
        for statement in block {
            match &statement.kind {
                StatementKind::Assign { variable, .. } | StatementKind::Declare { variable, .. } => {
                    if let Some(held) = self.held.get_mut(variable.index()) {
                        *held = None;
                    }
                }
                StatementKind::If { then, otherwise, .. } => {
                    self.lose(then);
                    self.lose(otherwise);
                }
                StatementKind::For { body, .. } => self.lose(body),
                StatementKind::While { condition, body, .. } => {
                    self.lose(condition);
                    self.lose(body);
                }
                _ => {}
            }
        }
    }
}
