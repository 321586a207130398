//! Barriers of the whole grid, with something between them that goes wrong where one is missing.
//!
//! Every thread has an element of a board. It writes what it knows, all threads meet, it reads what others wrote, and all meet again before
//! the next one writes. A thread that reads too early finds what was there before, and that is something else: what is written has
//! the round in it.

use kiln_ir::{
    Axis, BarrierScope, BinaryOp, Block, Builtin, Literal, MemoryOperand, Op, Operand, StatementKind, Type,
};

use super::Generator;
use super::expression::statement;

impl Generator {
    /// The threads of all blocks tell each other something.
    pub(super) fn meet(&mut self, block: &mut Block, own: Operand) {
        let Some(board) = self.board.filter(|_| self.uniform) else { return self.operation(block) };
        let (memory, ty) = (MemoryOperand::Buffer(board), Type::U64);
        let (scope, barrier) = (self.scope.len(), || statement(StatementKind::Barrier(BarrierScope::Grid)));
        self.meetings += 1;
        let mark = Literal::from(self.meetings.wrapping_mul(0x9E37_79B9_7F4A_7C15)).into();
        let known = self.add(block, Op::Read(self.digest), ty);
        let value = self.add(block, Op::Binary { op: BinaryOp::Add, ty, a: known, b: mark }, ty);
        block.push(statement(StatementKind::Store { memory, index: own, value }));
        block.push(barrier());
        for _ in 0..=self.random.below(2) {
            let index = self.elsewhere(block, own);
            let value = self.add(block, Op::Load { memory, index }, ty);
            self.observe(block, value, ty);
        }
        let heard = self.scope.last().copied();
        block.push(barrier());
        // What others said is a value like any other from here on.
        self.scope.truncate(scope);
        self.scope.extend(heard);
    }

    /// The element of a thread that is mostly one of another block: so many blocks further, around the end.
    fn elsewhere(&mut self, block: &mut Block, own: Operand) -> Operand {
        let ty = Type::U64;
        let binary = |op, a, b| Op::Binary { op, ty, a, b };
        let threads: u64 = self.draft.block.iter().map(|count| u64::from(*count)).product();
        let part = self.add(block, Op::Builtin(Builtin::GridDim(Axis::X)), Type::U32);
        let blocks = self.add(block, Op::Convert { from: Type::U32, to: ty, a: part }, ty);
        let all = self.add(block, binary(BinaryOp::Mul, blocks, Literal::from(threads).into()), ty);
        let step = match self.random.below(4) {
            0 => self.operand(ty),
            1 => Literal::from(self.random.below(threads as usize) as u64).into(),
            _ => Literal::from(threads * (1 + self.random.below(2) as u64)).into(),
        };
        let far = self.add(block, binary(BinaryOp::Add, own, step), ty);
        match self.random.below(6) {
            // Beyond the end there is nothing to hear.
            0 => far,
            _ => self.add(block, binary(BinaryOp::Rem, far, all), ty),
        }
    }
}
