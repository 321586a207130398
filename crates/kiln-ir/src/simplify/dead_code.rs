//! Dead code elimination.

use crate::builder::KernelBuilder;
use crate::declaration::ValueId;
use crate::operation::{Op, Operand};
use crate::program::Draft;
use crate::rewrite::Change;
use crate::statement::{Block, Statement, StatementKind};

/// The values and variables that are used.
pub(super) struct Live {
    values: Vec<bool>,
    variables: Vec<bool>,
}

/// Removes the others.
pub(super) struct Drop {
    pub(super) live: Live,
}

impl Live {
    pub(super) fn in_draft(draft: &Draft) -> Self {
        let mut found =
            Self { values: vec![false; draft.values.len()], variables: vec![false; draft.variables.len()] };
        // Uses come behind definitions except through variables, so a walk from the end finds nearly all at once.
        while found.mark(&draft.body) {}
        found
    }

    fn is_used(&self, statement: &Statement) -> bool {
        match &statement.kind {
            StatementKind::Let { value, op } => op.has_effect() || self.values[value.index()],
            StatementKind::Declare { variable, .. } | StatementKind::Assign { variable, .. } => {
                self.variables[variable.index()]
            }
            _ => true,
        }
    }

    fn operand(&mut self, operand: Operand) -> bool {
        let Operand::Value(id) = operand else { return false };
        !std::mem::replace(&mut self.values[id.index()], true)
    }

    /// Marks what used statements use; whether anything was new.
    fn mark(&mut self, block: &Block) -> bool {
        let mut new = false;
        for statement in block.iter().rev() {
            if !self.is_used(statement) {
                continue;
            }
            match &statement.kind {
                StatementKind::Let { op, .. } => {
                    for operand in op.operands() {
                        new |= self.operand(operand);
                    }
                    if let Op::Read(variable) = op {
                        new |= !std::mem::replace(&mut self.variables[variable.index()], true);
                    }
                }
                StatementKind::Declare { initial, .. } => {
                    new |= initial.is_some_and(|initial| self.operand(initial));
                }
                StatementKind::Assign { value, .. } | StatementKind::Trap(value) => {
                    new |= self.operand(*value)
                }
                StatementKind::Store { index, value, .. } => {
                    new |= self.operand(*index);
                    new |= self.operand(*value);
                }
                StatementKind::Tile(op) => {
                    for operand in op.operands() {
                        new |= self.operand(operand);
                    }
                }
                StatementKind::If { condition, then, otherwise } => {
                    new |= self.operand(*condition);
                    new |= self.mark(then);
                    new |= self.mark(otherwise);
                }
                StatementKind::For { start, end, step, body, .. } => {
                    for operand in [*start, *end, *step] {
                        new |= self.operand(operand);
                    }
                    new |= self.mark(body);
                }
                StatementKind::While { condition, test, body } => {
                    new |= self.mark(body);
                    new |= self.operand(*test);
                    new |= self.mark(condition);
                }
                _ => {}
            }
        }
        new
    }
}

impl Change for Drop {
    fn operation(&mut self, _: &KernelBuilder, _: ValueId, _: &Op) -> Option<Operand> {
        None
    }

    fn drops(&self, statement: &Statement) -> bool {
        !self.live.is_used(statement)
    }
}
