//! Accesses of elements that lie beside each other, some of which become one access of several.

use kiln_ir::{BinaryOp, Block, Literal, MemoryOperand, Op, Operand, StatementKind, Type};

use super::Generator;
use super::expression::statement;

/// Elements of the wide output that belong to one thread.
pub(super) const OWN_ELEMENTS: u64 = 4;

impl Generator {
    /// A multiple of four, by one of several ways, in a type of 32 or 64 bits.
    fn fourfold(&mut self, block: &mut Block, number: Operand) -> (Operand, Type) {
        let ty = [Type::U32, Type::U64][self.random.below(2)];
        let a = match ty {
            Type::U32 => self.add(block, Op::Convert { from: Type::U64, to: ty, a: number }, ty),
            _ => number,
        };
        let (op, b) = match self.random.below(2) {
            0 => (BinaryOp::Mul, Literal::new(ty, OWN_ELEMENTS).into()),
            _ => (BinaryOp::Shl, Literal::from(OWN_ELEMENTS.trailing_zeros()).into()),
        };
        (self.add(block, Op::Binary { op, ty, a, b }, ty), ty)
    }

    fn beside(&mut self, block: &mut Block, (a, ty): (Operand, Type), offset: u64) -> Operand {
        let b = Literal::new(ty, offset).into();
        match offset {
            0 if self.random.below(2) == 0 => a,
            _ => self.add(block, Op::Binary { op: BinaryOp::Add, ty, a, b }, ty),
        }
    }

    /// Loads elements of an input near a multiple of four.
    pub(super) fn load_beside(&mut self, block: &mut Block, own: Operand) {
        let id = self.inputs[self.random.below(self.inputs.len())];
        let element = self.draft.buffers[id.0 as usize].element;
        let number = match self.random.below(4) {
            0 => self.operand(Type::U64),
            1 => Literal::from(self.random.below(3) as u64).into(),
            _ => own,
        };
        let base = self.fourfold(block, number);
        let first = [0, 0, 4, u64::MAX - 3][self.random.below(4)];
        for _ in 0..2 + self.random.below(5) {
            let offset = first.wrapping_add(self.random.below(5) as u64);
            let index = self.beside(block, base, offset);
            let value = self.add(block, Op::Load { memory: MemoryOperand::Buffer(id), index }, element);
            self.observe(block, value, element);
            if self.random.below(4) == 0 {
                self.operation(block);
            }
        }
    }

    /// Loads and stores elements of the wide output that belong to this thread.
    pub(super) fn store_beside(&mut self, block: &mut Block, own: Operand) {
        let memory = MemoryOperand::Buffer(self.wide);
        let element = self.draft.buffers[self.wide.0 as usize].element;
        let base = self.fourfold(block, own);
        for _ in 0..2 + self.random.below(6) {
            let offset = self.random.below(OWN_ELEMENTS as usize) as u64;
            let index = self.beside(block, base, offset);
            if self.random.below(3) == 0 {
                let value = self.add(block, Op::Load { memory, index }, element);
                self.observe(block, value, element);
            } else {
                let value = self.operand(element);
                block.push(statement(StatementKind::Store { memory, index, value }));
            }
        }
        if self.random.below(2) == 0 {
            for offset in 0..OWN_ELEMENTS {
                let index = self.beside(block, base, offset);
                let value = self.operand(element);
                block.push(statement(StatementKind::Store { memory, index, value }));
            }
        }
    }
}
