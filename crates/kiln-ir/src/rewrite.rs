//! Rewriting of programs.
//!
//! Statements are copied one by one into a new kernel, and values and variables are renumbered in order. A [`Change`]
//! decides what replaces an operation or a statement.

use crate::builder::KernelBuilder;
use crate::declaration::{ValueId, VariableId};
use crate::literal::Literal;
use crate::operation::{Op, Operand};
use crate::program::Draft;
use crate::source_location::SourceLocation;
use crate::statement::{Block, STEP_TRAP, Statement, StatementKind};

/// A rewriting.
pub(crate) trait Change {
    /// What replaces an operation whose operands are already those of the new program: an operand, or `None` to copy
    /// the operation.
    fn operation(&mut self, kernel: &KernelBuilder, value: ValueId, op: &Op) -> Option<Operand>;

    /// Whether values and variables keep their names.
    fn keeps_names(&self) -> bool {
        true
    }

    /// Whether a statement of the old program is removed.
    fn drops(&self, statement: &Statement) -> bool {
        let _ = statement;
        false
    }

    /// The value of the condition of an `if`, if it is known; the condition is an operand of the new program.
    fn decided(&self, condition: Operand) -> Option<bool> {
        let _ = condition;
        None
    }
}

/// Rewrites a draft.
pub(crate) fn rewrite(draft: &Draft, change: &mut dyn Change) -> Draft {
    let kernel = KernelBuilder::rewriting(draft);
    let values = vec![None; draft.values.len()];
    let variables = vec![None; draft.variables.len()];
    Rewriter { draft, kernel: &kernel, change, values, variables }.block(&draft.body);
    kernel.into_draft()
}

struct Rewriter<'r> {
    draft: &'r Draft,
    kernel: &'r KernelBuilder,
    change: &'r mut dyn Change,
    /// The operand or variable of the new program for each value and variable of the old one.
    values: Vec<Option<Operand>>,
    variables: Vec<Option<VariableId>>,
}

impl Rewriter<'_> {
    fn block(&mut self, block: &Block) {
        for statement in block {
            if !self.change.drops(statement) {
                self.statement(statement);
            }
        }
    }

    fn inner(&mut self, block: &Block) -> Block {
        let kernel = self.kernel;
        kernel.collect(|| self.block(block)).0
    }

    fn operand(&self, operand: Operand) -> Operand {
        match operand {
            Operand::Value(id) => self.values[id.index()].unwrap_or(operand),
            Operand::Literal(_) => operand,
        }
    }

    fn new_value(&mut self, old: ValueId) -> ValueId {
        let declared = &self.draft.values[old.index()];
        let id = self.kernel.add_value(declared.ty);
        let name = declared.name.clone().filter(|_| self.change.keeps_names());
        self.kernel.edit(|draft| {
            if let Some(value) = draft.values.get_mut(id.index()) {
                value.name = name;
            }
        });
        self.values[old.index()] = Some(Operand::Value(id));
        id
    }

    fn variable(&mut self, old: VariableId) -> VariableId {
        if let Some(id) = self.variables[old.index()] {
            return id;
        }
        let declared = &self.draft.variables[old.index()];
        let id = self.kernel.add_variable(declared.ty);
        let name = declared.name.clone().filter(|_| self.change.keeps_names());
        self.kernel.edit(|draft| {
            if let Some(variable) = draft.variables.get_mut(id.index()) {
                variable.name = name;
            }
        });
        self.variables[old.index()] = Some(id);
        id
    }

    fn push(&self, kind: StatementKind, location: SourceLocation) {
        self.kernel.push_at(kind, location);
    }

    fn statement(&mut self, statement: &Statement) {
        let location = statement.location;
        match &statement.kind {
            StatementKind::Let { value, op } => self.define(*value, op, location),
            StatementKind::Declare { variable, initial } => {
                let initial = initial.map(|initial| self.operand(initial));
                let variable = self.variable(*variable);
                self.push(StatementKind::Declare { variable, initial }, location);
            }
            StatementKind::Assign { variable, value } => {
                let (variable, value) = (self.variable(*variable), self.operand(*value));
                self.push(StatementKind::Assign { variable, value }, location);
            }
            StatementKind::Store { memory, index, value } => {
                let (index, value) = (self.operand(*index), self.operand(*value));
                self.push(StatementKind::Store { memory: *memory, index, value }, location);
            }
            StatementKind::If { condition, then, otherwise } => {
                let condition = self.operand(*condition);
                if let Some(holds) = self.change.decided(condition) {
                    return self.block(if holds { then } else { otherwise });
                }
                let (then, otherwise) = (self.inner(then), self.inner(otherwise));
                self.push(StatementKind::If { condition, then, otherwise }, location);
            }
            StatementKind::For { value, start, end, step, body } => {
                let [start, end, step] = [*start, *end, *step].map(|operand| self.operand(operand));
                // A literal step below 1 does not verify; the loop traps instead.
                if let Operand::Literal(literal) = step
                    && literal.as_integer() < 1
                {
                    return self.push(StatementKind::Trap(Literal::from(STEP_TRAP).into()), location);
                }
                let value = self.new_value(*value);
                let body = self.inner(body);
                self.push(StatementKind::For { value, start, end, step, body }, location);
            }
            StatementKind::While { condition, test, body } => {
                let condition = self.inner(condition);
                let test = self.operand(*test);
                let body = self.inner(body);
                self.push(StatementKind::While { condition, test, body }, location);
            }
            StatementKind::Tile(op) => {
                let op = op.map_operands(|operand| self.operand(operand));
                self.push(StatementKind::Tile(op), location);
            }
            StatementKind::Trap(code) => self.push(StatementKind::Trap(self.operand(*code)), location),
            StatementKind::Break
            | StatementKind::Continue
            | StatementKind::Return
            | StatementKind::Barrier(_)
            | StatementKind::Fence(_) => self.push(statement.kind.clone(), location),
        }
    }

    fn define(&mut self, value: ValueId, op: &Op, location: SourceLocation) {
        let mut op = op.map_operands(|operand| self.operand(operand));
        if let Op::Read(variable) = &mut op {
            *variable = self.variable(*variable);
        }
        match self.change.operation(self.kernel, value, &op) {
            Some(operand) => self.values[value.index()] = Some(operand),
            None => {
                let value = self.new_value(value);
                self.push(StatementKind::Let { value, op }, location);
            }
        }
    }
}
