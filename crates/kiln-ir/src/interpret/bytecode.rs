//! Statements as a list of steps with jumps, so that a thread can be suspended at any step.

use crate::declaration::{ValueId, VariableId};
use crate::operation::{CompareOp, MemoryOperand, Op, Operand, TileOp};
use crate::program::Draft;
use crate::scalar_type::Type;
use crate::statement::{BarrierScope, Block, Statement, StatementKind};

/// One step of a thread.
#[derive(Clone, Debug)]
pub(super) enum Step {
    /// Computes a value.
    Compute(ValueId, Op),
    /// Copies an operand to a value.
    Copy(ValueId, Operand),
    /// Assigns a variable.
    Assign(VariableId, Operand),
    /// Writes an element.
    Store(MemoryOperand, Operand, Operand),
    /// Jumps.
    Jump(usize),
    /// Jumps unless a condition holds.
    Unless(Operand, usize),
    /// Advances the counter of a loop, or leaves it if the next value would not be below the end.
    Next { value: ValueId, ty: Type, end: Operand, step: Operand, exit: usize },
    /// Ends the launch if a step is below 1.
    RequireStride { ty: Type, step: Operand },
    /// Compares the counter of a loop with its end before the first iteration.
    Enter { value: ValueId, ty: Type, end: Operand, exit: usize },
    /// Waits for the other lanes and works on a tile with them.
    Tile(TileOp),
    /// Waits for others.
    Barrier(BarrierScope),
    /// Ends the thread.
    Return,
    /// Ends the launch.
    Trap(Operand),
}

/// The steps of a program.
pub(super) fn code(draft: &Draft) -> Vec<Step> {
    let mut writer = Writer { draft, steps: Vec::new(), loops: Vec::new() };
    writer.block(&draft.body);
    writer.steps.push(Step::Return);
    writer.steps
}

/// The jumps out of a loop whose targets are not known yet.
#[derive(Default)]
struct Open {
    breaks: Vec<usize>,
    continues: Vec<usize>,
}

struct Writer<'d> {
    draft: &'d Draft,
    steps: Vec<Step>,
    loops: Vec<Open>,
}

/// Stands for a target that is filled in later.
const LATER: usize = usize::MAX;

impl Writer<'_> {
    fn block(&mut self, block: &Block) {
        block.iter().for_each(|statement| self.statement(statement));
    }

    fn push(&mut self, step: Step) -> usize {
        self.steps.push(step);
        self.steps.len() - 1
    }

    /// Sets the target of the jump at `at` to the next step.
    fn land(&mut self, at: usize) {
        let here = self.steps.len();
        match &mut self.steps[at] {
            Step::Jump(to)
            | Step::Unless(_, to)
            | Step::Next { exit: to, .. }
            | Step::Enter { exit: to, .. } => {
                *to = here;
            }
            _ => {}
        }
    }

    fn statement(&mut self, statement: &Statement) {
        match &statement.kind {
            StatementKind::Let { value, op } => drop(self.push(Step::Compute(*value, op.clone()))),
            StatementKind::Declare { variable, initial: Some(value) }
            | StatementKind::Assign { variable, value } => drop(self.push(Step::Assign(*variable, *value))),
            StatementKind::Declare { initial: None, .. } | StatementKind::Fence(_) => {}
            StatementKind::Store { memory, index, value } => {
                self.push(Step::Store(*memory, *index, *value));
            }
            StatementKind::If { condition, then, otherwise } => {
                let skip = self.push(Step::Unless(*condition, LATER));
                self.block(then);
                let over = self.push(Step::Jump(LATER));
                self.land(skip);
                self.block(otherwise);
                self.land(over);
            }
            StatementKind::For { value, start, end, step, body } => {
                self.count(*value, *start, *end, *step, body)
            }
            StatementKind::While { condition, test, body } => {
                let head = self.steps.len();
                self.block(condition);
                let exit = self.push(Step::Unless(*test, LATER));
                self.body(body);
                self.continue_here();
                self.push(Step::Jump(head));
                self.land(exit);
                self.break_here();
            }
            StatementKind::Break | StatementKind::Continue => {
                let jump = self.push(Step::Jump(LATER));
                if let Some(open) = self.loops.last_mut() {
                    let list = match statement.kind {
                        StatementKind::Break => &mut open.breaks,
                        _ => &mut open.continues,
                    };
                    list.push(jump);
                }
            }
            StatementKind::Return => drop(self.push(Step::Return)),
            StatementKind::Trap(code) => drop(self.push(Step::Trap(*code))),
            StatementKind::Tile(op) => drop(self.push(Step::Tile(*op))),
            StatementKind::Barrier(scope) => drop(self.push(Step::Barrier(*scope))),
        }
    }

    fn count(&mut self, value: ValueId, start: Operand, end: Operand, step: Operand, body: &Block) {
        let ty = self.draft.type_of(start).unwrap_or(Type::U32);
        if let Operand::Value(_) = step {
            self.push(Step::RequireStride { ty, step });
        }
        self.push(Step::Copy(value, start));
        let enter = self.push(Step::Enter { value, ty, end, exit: LATER });
        let first = self.steps.len();
        self.body(body);
        self.continue_here();
        let next = self.push(Step::Next { value, ty, end, step, exit: LATER });
        self.push(Step::Jump(first));
        self.land(enter);
        self.land(next);
        self.break_here();
    }

    fn body(&mut self, body: &Block) {
        self.loops.push(Open::default());
        self.block(body);
    }

    fn continue_here(&mut self) {
        let open = self.loops.last_mut().map(|open| std::mem::take(&mut open.continues));
        open.into_iter().flatten().for_each(|at| self.land(at));
    }

    fn break_here(&mut self) {
        let open = self.loops.pop().unwrap_or_default();
        open.breaks.into_iter().for_each(|at| self.land(at));
    }
}

/// The next counter of a loop, if it is below the end and has not wrapped around.
pub(super) fn next_number(ty: Type, value: u64, end: u64, step: u64) -> Option<u64> {
    let next = crate::evaluate::integer::value(ty, value) + crate::evaluate::integer::value(ty, step);
    (next < crate::evaluate::integer::value(ty, end)).then_some(next as u64 & ty.mask())
}

/// Whether the first counter of a loop is below its end.
pub(super) fn is_below(ty: Type, value: u64, end: u64) -> bool {
    let mode = crate::evaluate::Mode { flush: false };
    crate::evaluate::compare(CompareOp::Lt, ty, value, end, mode)
}
