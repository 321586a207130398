//! Accesses behind conditions that compare their index with a length. Where the condition proves that the index is in range the
//! check is left out; an access that was not in range would be found.

use kiln_ir::{
    BinaryOp, Block, CompareOp, Literal, MemoryOperand, Op, Operand, StatementKind, Type, UnaryOp, Variable,
    VariableId,
};

use super::Generator;
use super::expression::{INTEGERS, statement};

/// What is compared with a length, and what is loaded with.
struct Index {
    compared: Operand,
    /// What `compared` was made of.
    source: Operand,
    /// Whether that is a number to which something was added, and not one of another type.
    is_sum: bool,
}

impl Generator {
    /// A number of 64 bits: one that is there, with something added, or converted from another type.
    fn compared_index(&mut self, block: &mut Block, own: Operand) -> Index {
        let source = if self.random.below(2) == 0 { own } else { self.operand(Type::U64) };
        match self.random.below(3) {
            0 => Index { compared: source, source, is_sum: true },
            1 => Index { compared: self.plus(block, source), source, is_sum: true },
            _ => {
                let from = INTEGERS[self.random.below(INTEGERS.len())];
                let source = self.operand(from);
                let compared = self.add(block, Op::Convert { from, to: Type::U64, a: source }, Type::U64);
                Index { compared, source, is_sum: false }
            }
        }
    }

    /// A number and a bit more.
    fn plus(&mut self, block: &mut Block, a: Operand) -> Operand {
        let (ty, b) = (Type::U64, Literal::from(self.random.below(4) as u64).into());
        self.add(block, Op::Binary { op: BinaryOp::Add, ty, a, b }, ty)
    }

    /// Compares an index with a length in some way, and loads with it and with numbers near it, inside and behind.
    pub(super) fn guard(&mut self, block: &mut Block, own: Operand) {
        let id = self.inputs[self.random.below(self.inputs.len())];
        let (memory, element) = (MemoryOperand::Buffer(id), self.draft.buffers[id.0 as usize].element);
        let length = self.add(block, Op::Length(memory), Type::U64);
        let Index { compared, source, is_sum } = self.compared_index(block, own);
        let op = CompareOp::ALL[self.random.below(CompareOp::ALL.len())];
        let (a, b) = if self.random.below(2) == 0 { (compared, length) } else { (length, compared) };
        let mut condition = self.add(block, Op::Compare { op, ty: Type::U64, a, b }, Type::Bool);
        let (ty, b) = (Type::Bool, self.operand(Type::Bool));
        condition = match self.random.below(4) {
            0 => self.add(block, Op::Unary { op: UnaryOp::Not, ty, a: condition }, ty),
            1 => self.add(block, Op::Binary { op: BinaryOp::And, ty, a: condition, b }, ty),
            2 => self.add(block, Op::Binary { op: BinaryOp::Or, ty, a: condition, b }, ty),
            _ => condition,
        };
        let load = |generator: &mut Self, block: &mut Block| {
            let again = if is_sum { generator.plus(block, source) } else { source };
            for index in [compared, again] {
                let value = generator.add(block, Op::Load { memory, index }, element);
                generator.observe(block, value, element);
            }
        };
        let leaves = self.other_loops > 0 && self.random.below(2) == 0;
        let returned = self.returns;
        let then = self.inner(false, own, load);
        let then = then.into_iter().chain(leaves.then(|| statement(StatementKind::Break))).collect();
        let otherwise = if leaves { Block::new() } else { self.inner(false, own, load) };
        block.push(statement(StatementKind::If { condition, then, otherwise }));
        self.uniform &= returned == self.returns;
        load(self, block);
    }

    /// Walks a variable through a buffer as long as it is in range, and looks at the element before and after each step.
    pub(super) fn walk(&mut self, block: &mut Block, own: Operand) {
        if self.uniform_loops + self.other_loops > 1 || self.fuel < 2 {
            return self.operation(block);
        }
        let id = self.inputs[self.random.below(self.inputs.len())];
        let (memory, element, ty) =
            (MemoryOperand::Buffer(id), self.draft.buffers[id.0 as usize].element, Type::U64);
        self.draft.variables.push(Variable { name: None, ty });
        let variable = VariableId(self.draft.variables.len() as u32 - 1);
        let initial = if self.random.below(2) == 0 { own } else { self.operand(ty) };
        block.push(statement(StatementKind::Declare { variable, initial: Some(initial) }));
        let (scope, returned) = (self.scope.len(), self.returns);
        let mut condition = Block::new();
        let now = self.add(&mut condition, Op::Read(variable), ty);
        let length = self.add(&mut condition, Op::Length(memory), ty);
        let test =
            self.add(&mut condition, Op::Compare { op: CompareOp::Lt, ty, a: now, b: length }, Type::Bool);
        self.scope.truncate(scope);
        let look = |generator: &mut Self, block: &mut Block| {
            let index = generator.add(block, Op::Read(variable), ty);
            let value = generator.add(block, Op::Load { memory, index }, element);
            generator.observe(block, value, element);
        };
        let step = Literal::from(self.random.below(3) as u64 + 1).into();
        self.other_loops += 1;
        let body = self.inner(false, own, |generator, block| {
            look(generator, block);
            let now = generator.add(block, Op::Read(variable), ty);
            let value = generator.add(block, Op::Binary { op: BinaryOp::Add, ty, a: now, b: step }, ty);
            block.push(statement(StatementKind::Assign { variable, value }));
            look(generator, block);
        });
        self.other_loops -= 1;
        block.push(statement(StatementKind::While { condition, test, body }));
        self.uniform &= returned == self.returns;
        look(self, block);
    }
}
