//! Statements as text.
//!
//! A value without a name that is used once is held back until its use. If everything held back is used in order, each
//! goes where it is used; otherwise it is written as a `let`. So the text, read from left to right, computes in the
//! order of the program.

use super::print_operation::{Piece, operation};
use crate::declaration::{ValueId, VariableId};
use crate::operation::{Op, Operand};
use crate::program::Draft;
use crate::statement::{Block, Statement, StatementKind};

/// Expressions are not nested deeper than this.
const MAX_NESTING: usize = 24;

pub(super) struct Printer<'d> {
    draft: &'d Draft,
    uses: Vec<u32>,
    /// Values that wait for their use, in the order of the program.
    held: Vec<(ValueId, Piece)>,
    lines: String,
}

impl<'d> Printer<'d> {
    pub(super) fn new(draft: &'d Draft) -> Self {
        let mut uses = vec![0; draft.values.len()];
        count_uses(&draft.body, &mut uses);
        Self { draft, uses, held: Vec::new(), lines: String::new() }
    }

    pub(super) fn text(self) -> String {
        self.lines
    }

    pub(super) fn block(&mut self, block: &Block, indent: usize) {
        for statement in block {
            self.statement(statement, indent);
        }
        self.release(indent);
    }

    fn line(&mut self, indent: usize, text: &str) {
        self.lines.push_str(&"    ".repeat(indent));
        self.lines.push_str(text);
        self.lines.push('\n');
    }

    /// Prints everything that is held back.
    fn release(&mut self, indent: usize) {
        for (value, piece) in std::mem::take(&mut self.held) {
            self.let_line(value, &piece.text, indent);
        }
    }

    fn let_line(&mut self, value: ValueId, text: &str, indent: usize) {
        let ty = self.draft.values.get(value.index()).map_or(String::new(), |value| value.ty.to_string());
        let name = self.value_name(value);
        self.line(indent, &format!("let {name}: {ty} = {text};"));
    }

    fn value_name(&self, id: ValueId) -> String {
        match self.draft.values.get(id.index()).and_then(|value| value.name.clone()) {
            Some(name) => name,
            None => format!("%{}", id.0),
        }
    }

    /// The pieces for some operands. Those held back are taken if they are the last ones, in this order.
    fn pieces(&mut self, operands: &[Operand], indent: usize) -> Vec<Piece> {
        let is_held = |operand: &Operand| match operand {
            Operand::Value(id) => self.held.iter().any(|(held, _)| held == id),
            Operand::Literal(_) => false,
        };
        let wanted: Vec<ValueId> = operands
            .iter()
            .filter(|operand| is_held(operand))
            .filter_map(|operand| match operand {
                Operand::Value(id) => Some(*id),
                Operand::Literal(_) => None,
            })
            .collect();
        let start = self.held.len() - wanted.len().min(self.held.len());
        let in_order = self.held[start..].iter().map(|(id, _)| id).eq(&wanted);
        let flat = self.held[start..].iter().all(|(_, piece)| piece.depth < MAX_NESTING);
        if !in_order || !flat {
            self.release(indent);
        }
        let start = start.min(self.held.len());
        let mut taken = self.held.split_off(start).into_iter();
        let piece = |operand: &Operand| match operand {
            Operand::Literal(literal) => Piece::plain(literal.to_string()),
            Operand::Value(id) if in_order && flat && wanted.contains(id) => {
                taken.next().map_or_else(|| Piece::plain(String::new()), |(_, piece)| piece)
            }
            Operand::Value(id) => Piece::plain(self.value_name(*id)),
        };
        operands.iter().map(piece).collect()
    }

    /// The same for a statement: what is held back before it is written down first.
    fn texts(&mut self, operands: &[Operand], indent: usize) -> Vec<String> {
        let pieces = self.pieces(operands, indent);
        self.release(indent);
        pieces.into_iter().map(|piece| piece.text).collect()
    }

    fn define(&mut self, value: ValueId, op: &Op, indent: usize) {
        let pieces = self.pieces(&op.operands(), indent);
        let piece = operation(self.draft, op, &pieces);
        let declared = self.draft.values.get(value.index());
        let uses = self.uses.get(value.index()).copied().unwrap_or(0);
        match declared.is_some_and(|declared| declared.name.is_none()) {
            true if uses == 1 => self.held.push((value, piece)),
            true if uses == 0 && op.has_effect() => {
                self.release(indent);
                self.line(indent, &format!("{};", piece.text));
            }
            _ => {
                self.release(indent);
                self.let_line(value, &piece.text, indent);
            }
        }
    }

    fn statement(&mut self, statement: &Statement, indent: usize) {
        match &statement.kind {
            StatementKind::Let { value, op } => self.define(*value, op, indent),
            StatementKind::Declare { variable, initial } => {
                let initial = initial.map(|initial| self.texts(&[initial], indent));
                let ty =
                    self.draft.variables.get(variable.index()).map_or(String::new(), |v| v.ty.to_string());
                let name = variable_name(self.draft, *variable);
                self.release(indent);
                match initial {
                    Some(initial) => self.line(indent, &format!("var {name}: {ty} = {};", initial.concat())),
                    None => self.line(indent, &format!("var {name}: {ty};")),
                }
            }
            StatementKind::Assign { variable, value } => {
                let value = self.texts(&[*value], indent).concat();
                let name = variable_name(self.draft, *variable);
                self.line(indent, &format!("{name} = {value};"));
            }
            StatementKind::Store { memory, index, value } => {
                let texts = self.texts(&[*index, *value], indent);
                let name = self.draft.memory_name(*memory).to_owned();
                let [index, value] = [0, 1].map(|at| texts.get(at).map_or("", |text| text));
                self.line(indent, &format!("{name}[{index}] = {value};"));
            }
            StatementKind::Trap(code) => {
                let code = self.texts(&[*code], indent).concat();
                self.line(indent, &format!("trap({code});"));
            }
            StatementKind::Tile(op) => {
                let texts = self.texts(&op.operands(), indent);
                self.line(indent, &super::tile::statement(self.draft, op, &texts));
            }
            _ => self.flow(statement, indent),
        }
    }

    fn flow(&mut self, statement: &Statement, indent: usize) {
        match &statement.kind {
            StatementKind::If { condition, then, otherwise } => {
                let condition = self.texts(&[*condition], indent).concat();
                self.line(indent, &format!("if {condition} {{"));
                self.block(then, indent + 1);
                if !otherwise.is_empty() {
                    self.line(indent, "} else {");
                    self.block(otherwise, indent + 1);
                }
                self.line(indent, "}");
            }
            StatementKind::For { value, start, end, step, body } => {
                let texts = self.texts(&[*start, *end, *step], indent);
                let [start, end, by] = [0, 1, 2].map(|at| texts.get(at).map_or("", |text| text));
                let by = match step {
                    Operand::Literal(step) if step.bits() == 1 => String::new(),
                    // The bounds say the type.
                    Operand::Literal(step) => format!(" step {}", step.as_integer()),
                    Operand::Value(_) => format!(" step {by}"),
                };
                let name = self.value_name(*value);
                self.line(indent, &format!("for {name} in {start}..{end}{by} {{"));
                self.block(body, indent + 1);
                self.line(indent, "}");
            }
            StatementKind::While { condition, test, body } => {
                self.release(indent);
                self.condition(condition, *test, indent);
                self.block(body, indent + 1);
                self.line(indent, "}");
            }
            StatementKind::Barrier(scope) => self.simple(indent, &format!("barrier {scope};")),
            StatementKind::Fence(scope) => self.simple(indent, &format!("fence {scope};")),
            StatementKind::Break => self.simple(indent, "break;"),
            StatementKind::Continue => self.simple(indent, "continue;"),
            _ => self.simple(indent, "return;"),
        }
    }

    fn simple(&mut self, indent: usize, text: &str) {
        self.release(indent);
        self.line(indent, text);
    }

    /// The head of a `while`: an expression, or statements and an expression in braces.
    fn condition(&mut self, condition: &Block, test: Operand, indent: usize) {
        let before = std::mem::take(&mut self.lines);
        for statement in condition {
            self.statement(statement, indent + 1);
        }
        let test = self.texts(&[test], indent + 1).concat();
        let lines = std::mem::replace(&mut self.lines, before);
        if lines.is_empty() {
            return self.line(indent, &format!("while {test} {{"));
        }
        self.line(indent, "while {");
        self.lines.push_str(&lines);
        self.line(indent + 1, &format!("= {test}"));
        self.line(indent, "} {");
    }
}

/// The name of a variable, or its number behind a mark.
pub(super) fn variable_name(draft: &Draft, id: VariableId) -> String {
    match draft.variables.get(id.index()).and_then(|variable| variable.name.clone()) {
        Some(name) => name,
        None => format!("${}", id.0),
    }
}

fn count_uses(block: &Block, uses: &mut [u32]) {
    let mut count = |operands: &[Operand]| {
        for operand in operands {
            if let Operand::Value(id) = operand
                && let Some(uses) = uses.get_mut(id.index())
            {
                *uses += 1;
            }
        }
    };
    for statement in block {
        match &statement.kind {
            StatementKind::Let { op, .. } => count(&op.operands()),
            StatementKind::Declare { initial, .. } => count(initial.as_slice()),
            StatementKind::Assign { value, .. } | StatementKind::Trap(value) => count(&[*value]),
            StatementKind::Tile(op) => count(&op.operands()),
            StatementKind::Store { index, value, .. } => count(&[*index, *value]),
            StatementKind::If { condition, .. } => count(&[*condition]),
            StatementKind::For { start, end, step, .. } => count(&[*start, *end, *step]),
            StatementKind::While { test, .. } => count(&[*test]),
            _ => {}
        }
    }
    for statement in block {
        match &statement.kind {
            StatementKind::If { then, otherwise, .. } => {
                count_uses(then, uses);
                count_uses(otherwise, uses);
            }
            StatementKind::For { body, .. } => count_uses(body, uses),
            StatementKind::While { condition, body, .. } => {
                count_uses(condition, uses);
                count_uses(body, uses);
            }
            _ => {}
        }
    }
}
