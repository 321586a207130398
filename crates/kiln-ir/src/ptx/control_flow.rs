//! Statements: control flow as branches between labels.

use super::register::Class;
use super::vector_access::Stores;
use super::writer::{Loop, Writer, ins};
use crate::declaration::ValueId;
use crate::literal::Literal;
use crate::operation::Operand;
use crate::statement::{BarrierScope, Block, STEP_TRAP, Statement, StatementKind};

impl Writer<'_> {
    pub(super) fn block(&mut self, block: &Block) {
        let known = self.known();
        self.statements(block);
        self.forget(known);
    }

    fn statements(&mut self, block: &Block) {
        let mut stores = Stores::default();
        for (at, statement) in block.iter().enumerate() {
            self.locate(statement.location);
            if !self.gather(block, at, &mut stores) {
                self.statement(statement);
            }
        }
    }

    fn statement(&mut self, statement: &Statement) {
        match &statement.kind {
            StatementKind::Let { value, op } => self.define(*value, op),
            StatementKind::Declare { variable, initial: Some(value) }
            | StatementKind::Assign { variable, value } => {
                self.proof.same.assign(*variable, *value);
                self.assign(*variable, *value);
            }
            StatementKind::Declare { initial: None, .. } => {}
            StatementKind::Store { memory, index, value } => self.store(*memory, *index, *value),
            StatementKind::If { condition, then, otherwise } => self.branch(*condition, then, otherwise),
            StatementKind::For { value, start, end, step, body } => {
                self.count(*value, *start, *end, *step, body)
            }
            StatementKind::While { condition, test, body } => self.repeat(condition, *test, body),
            StatementKind::Break => {
                if let Some(Loop { exit, .. }) = self.loops.last().copied() {
                    ins!(self, "bra {exit}");
                }
            }
            StatementKind::Continue => {
                if let Some(Loop { next, .. }) = self.loops.last().copied() {
                    ins!(self, "bra {next}");
                }
            }
            StatementKind::Return => self.line("ret"),
            StatementKind::Barrier(BarrierScope::Block) => self.line("bar.sync 0"),
            StatementKind::Barrier(BarrierScope::Grid) => self.meet_in_grid(),
            StatementKind::Fence(scope) => self.fence(*scope),
            StatementKind::Tile(op) => self.tile_operation(op),
            StatementKind::Trap(code) => self.trap(*code),
        }
    }

    fn branch(&mut self, condition: Operand, then: &Block, otherwise: &Block) {
        let test = self.register(condition);
        let (other, end) = (self.label(), self.label());
        let held = self.proof.same.held();
        ins!(self, "@!{test} bra {other}");
        self.block_where(condition, true, then);
        if otherwise.is_empty() {
            self.place(other);
            self.proof.same.rejoin(&held, &[then]);
            return self.assume_after(condition, then);
        }
        ins!(self, "bra {end}");
        self.place(other);
        self.proof.same.rejoin(&held, &[]);
        self.block_where(condition, false, otherwise);
        self.place(end);
        self.proof.same.rejoin(&held, &[then, otherwise]);
    }

    /// Writes a block in which a condition holds, or does not.
    fn block_where(&mut self, condition: Operand, holds: bool, block: &Block) {
        let known = self.known();
        self.assume(condition, holds);
        self.block(block);
        self.forget(known);
    }

    fn count(&mut self, value: ValueId, start: Operand, end: Operand, step: Operand, body: &Block) {
        let ty = self.ty(start);
        self.check_step(step);
        let (is_one, step) = (step == Literal::new(ty, 1).into(), self.operand(step));
        let (class, name) = (Class::of(ty), super::integer::name(ty));
        let (number, start, end) = (self.fresh(class), self.operand(start), self.register(end));
        if let Some(slot) = self.values.get_mut(value.index()) {
            *slot = Some(number);
        }
        let (first, next, exit) = (self.label(), self.label(), self.label());
        ins!(self, "mov.{} {number}, {start}", class.name());
        let done =
            self.compute(Class::Pred, &format!("setp.ge.{name}"), &[&number.to_string(), &end.to_string()]);
        ins!(self, "@{done} bra {exit}");
        self.place(first);
        let held = self.proof.same.held();
        self.proof.same.rejoin(&held, &[body]);
        self.loops.push(Loop { next, exit });
        self.block(body);
        self.loops.pop();
        self.proof.same.rejoin(&held, &[body]);
        self.place(next);
        if is_one {
            // The number is below the end, so one more is still a number of the type.
            ins!(self, "add.{name} {number}, {number}, 1");
            let more = self.compute(
                Class::Pred,
                &format!("setp.lt.{name}"),
                &[&number.to_string(), &end.to_string()],
            );
            ins!(self, "@{more} bra {first}");
        } else {
            let unsigned = if ty.bits() == 64 { "u64" } else { "u32" };
            let left = self.compute(class, &format!("sub.{name}"), &[&end.to_string(), &number.to_string()]);
            let done = self.compute(Class::Pred, &format!("setp.le.{unsigned}"), &[&left.to_string(), &step]);
            ins!(self, "@{done} bra {exit}");
            ins!(self, "add.{name} {number}, {number}, {step}");
            ins!(self, "bra {first}");
        }
        self.place(exit);
    }

    /// Traps where a step may be below 1 and is.
    fn check_step(&mut self, step: Operand) {
        if self.ranges.is_positive(self.draft, step) {
            return;
        }
        let ty = self.ty(step);
        let (register, name, go_on) = (self.register(step), super::integer::name(ty), self.label());
        let is_positive =
            self.compute(Class::Pred, &format!("setp.gt.{name}"), &[&register.to_string(), "0"]);
        ins!(self, "@{is_positive} bra {go_on}");
        self.trap(Literal::from(STEP_TRAP).into());
        self.place(go_on);
    }

    fn repeat(&mut self, condition: &Block, test: Operand, body: &Block) {
        let (next, exit) = (self.label(), self.label());
        self.place(next);
        let (known, held) = (self.known(), self.proof.same.held());
        self.proof.same.rejoin(&held, &[condition, body]);
        // What the condition computes comes before every round, so the body knows it.
        self.statements(condition);
        let go_on = self.register(test);
        ins!(self, "@!{go_on} bra {exit}");
        self.assume(test, true);
        self.loops.push(Loop { next, exit });
        self.block(body);
        self.loops.pop();
        self.forget(known);
        self.proof.same.rejoin(&held, &[condition, body]);
        ins!(self, "bra {next}");
        self.place(exit);
    }
}
