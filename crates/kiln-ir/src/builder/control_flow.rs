//! Control flow: closures are blocks.

use crate::literal::Literal;
use crate::operation::{MemoryScope, Operand};
use crate::statement::{BarrierScope, Block, StatementKind};

use super::element::{IntoOperand, KernelInteger};
use super::kernel::KernelBuilder;
use super::value::Val;

impl KernelBuilder {
    /// Does something if a condition holds.
    #[track_caller]
    pub fn if_(&self, condition: impl IntoOperand<bool>, then: impl FnOnce()) {
        let condition = condition.operand();
        let (then, ()) = self.collect(then);
        self.push(StatementKind::If { condition, then, otherwise: Block::new() });
    }

    /// Executes one of two blocks.
    #[track_caller]
    pub fn if_else(&self, condition: impl IntoOperand<bool>, then: impl FnOnce(), otherwise: impl FnOnce()) {
        let condition = condition.operand();
        let (then, ()) = self.collect(then);
        let (otherwise, ()) = self.collect(otherwise);
        self.push(StatementKind::If { condition, then, otherwise });
    }

    /// Counts from `start` while the number is below `end`: [`StatementKind::For`].
    #[track_caller]
    pub fn for_<'k, I: KernelInteger>(
        &'k self,
        start: impl IntoOperand<I>,
        end: impl IntoOperand<I>,
        body: impl FnOnce(Val<'k, I>),
    ) {
        self.count(start.operand(), end.operand(), Literal::new(I::TYPE, 1).into(), body);
    }

    /// The same in larger steps, which may be known at run time only: [`StatementKind::For`].
    ///
    /// ```
    /// use kiln_ir::{Axis, Program};
    ///
    /// // A grid of any size covers the buffer: each thread takes every element that is a whole number of grids away.
    /// let scale = Program::build("scale", |k| {
    ///     let x = k.in_out::<f32>("x");
    ///     let by = k.scalar::<f32>("by");
    ///     let stride = k.grid_dim(Axis::X).to::<u64>() * k.block_dim(Axis::X).to::<u64>();
    ///     k.for_step(k.global_x(), x.length(), stride, |i| x.store(i, x.load(i) * by));
    /// })?;
    /// assert!(scale.to_string().contains("step "));
    /// # Ok::<(), kiln_ir::VerifyError>(())
    /// ```
    #[track_caller]
    pub fn for_step<'k, I: KernelInteger>(
        &'k self,
        start: impl IntoOperand<I>,
        end: impl IntoOperand<I>,
        step: impl IntoOperand<I>,
        body: impl FnOnce(Val<'k, I>),
    ) {
        self.count(start.operand(), end.operand(), step.operand(), body);
    }

    #[track_caller]
    fn count<'k, I: KernelInteger>(
        &'k self,
        start: Operand,
        end: Operand,
        step: Operand,
        body: impl FnOnce(Val<'k, I>),
    ) {
        let value = self.add_value(I::TYPE);
        let (body, ()) = self.collect(|| body(Val::new(self, Operand::Value(value))));
        self.push(StatementKind::For { value, start, end, step, body });
    }

    /// Repeats a body while a condition holds. What computes the condition runs before every iteration.
    #[track_caller]
    pub fn while_<C: IntoOperand<bool>>(&self, condition: impl FnOnce() -> C, body: impl FnOnce()) {
        let (condition, test) = self.collect(|| condition().operand());
        let (body, ()) = self.collect(body);
        self.push(StatementKind::While { condition, test, body });
    }

    /// Leaves the innermost loop.
    #[track_caller]
    pub fn break_(&self) {
        self.push(StatementKind::Break);
    }

    /// Continues with the next iteration of the innermost loop.
    #[track_caller]
    pub fn continue_(&self) {
        self.push(StatementKind::Continue);
    }

    /// Ends the thread.
    #[track_caller]
    pub fn return_(&self) {
        self.push(StatementKind::Return);
    }

    /// Ends the launch with an error: [`StatementKind::Trap`].
    #[track_caller]
    pub fn trap(&self, code: impl IntoOperand<u32>) {
        let code = code.operand();
        self.push(StatementKind::Trap(code));
    }

    /// Waits for all threads of the block.
    #[track_caller]
    pub fn barrier(&self) {
        self.push(StatementKind::Barrier(BarrierScope::Block));
    }

    /// Waits for all threads of the grid; the launch must be cooperative.
    #[track_caller]
    pub fn grid_barrier(&self) {
        self.push(StatementKind::Barrier(BarrierScope::Grid));
    }

    /// Orders memory: [`StatementKind::Fence`].
    #[track_caller]
    pub fn fence(&self, scope: MemoryScope) {
        self.push(StatementKind::Fence(scope));
    }
}
