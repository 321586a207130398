//! Statements around the operations.

use kiln_ir::{
    AtomicOp, Axis, BarrierScope, BinaryOp, Block, Builtin, CompareOp, Literal, MemoryOperand, MemoryOrder,
    MemoryScope, Op, Operand, SharedId, StatementKind, Type, Variable, VariableId,
};

use super::expression::statement;
use super::{ATOMIC_OPS, ATOMIC_TYPES, Generator};

/// Rounds of a loop, at most.
const ROUNDS: usize = 4;

impl Generator {
    /// The whole program: statements, then every output stored once.
    pub(super) fn body(&mut self) -> Block {
        let mut block = Block::new();
        let (own, _) = self.own_index(&mut block);
        self.draft.variables.push(Variable { name: None, ty: Type::U64 });
        let initial = Some(Literal::zero(Type::U64).into());
        block.push(statement(StatementKind::Declare { variable: self.digest, initial }));
        while self.fuel > 0 {
            self.statement(&mut block, own);
        }
        for at in 0..self.outputs.len() {
            self.store_own(&mut block, at, own);
        }
        self.store_tile(&mut block);
        self.store_digest(&mut block, own);
        block
    }

    fn store_digest(&mut self, block: &mut Block, own: Operand) {
        let value = self.add(block, Op::Read(self.digest), Type::U64);
        let memory = MemoryOperand::Buffer(self.digests);
        block.push(statement(StatementKind::Store { memory, index: own, value }));
    }

    /// Mixes a value into the digest of the thread; every NaN counts as the same.
    pub(super) fn observe(&mut self, block: &mut Block, value: Operand, ty: Type) {
        let scope = self.scope.len();
        let mut bits = value;
        let mut unsigned = ty;
        if ty.is_float() {
            unsigned = [Type::U16, Type::U32, Type::U64][ty.bytes().trailing_zeros() as usize - 1];
            let number =
                self.add(block, Op::Compare { op: CompareOp::Eq, ty, a: value, b: value }, Type::Bool);
            let raw = self.add(block, Op::Bitcast { from: ty, to: unsigned, a: value }, unsigned);
            let nan = Literal::new(unsigned, 0x7e01).into();
            bits = self.add(block, Op::Select { ty: unsigned, condition: number, a: raw, b: nan }, unsigned);
        }
        let wide = self.add(block, Op::Convert { from: unsigned, to: Type::U64, a: bits }, Type::U64);
        let before = self.add(block, Op::Read(self.digest), Type::U64);
        let (ty, b) = (Type::U64, Literal::from(7u32).into());
        let turned = self.add(block, Op::Binary { op: BinaryOp::RotateLeft, ty, a: before, b }, ty);
        let value = self.add(block, Op::Binary { op: BinaryOp::Xor, ty, a: turned, b: wide }, ty);
        block.push(statement(StatementKind::Assign { variable: self.digest, value }));
        self.scope.truncate(scope);
    }

    /// The number of the thread in the grid, over all dimensions, which no other thread has.
    fn own_index(&mut self, block: &mut Block) -> (Operand, Type) {
        let mut number = Literal::zero(Type::U64).into();
        let [width, height, depth] = self.draft.block.map(u64::from);
        let term =
            |generator: &mut Self, block: &mut Block, builtin: Builtin, factor: u64, number: Operand| {
                let part = generator.add(block, Op::Builtin(builtin), Type::U32);
                let wide =
                    generator.add(block, Op::Convert { from: Type::U32, to: Type::U64, a: part }, Type::U64);
                let (ty, b) = (Type::U64, Literal::from(factor).into());
                let scaled = generator.add(block, Op::Binary { op: BinaryOp::Mul, ty, a: wide, b }, ty);
                generator.add(block, Op::Binary { op: BinaryOp::Add, ty, a: scaled, b: number }, ty)
            };
        let threads = width * height * depth;
        number = term(self, block, Builtin::Thread(Axis::X), 1, number);
        number = term(self, block, Builtin::Thread(Axis::Y), width, number);
        number = term(self, block, Builtin::Thread(Axis::Z), width * height, number);
        number = term(self, block, Builtin::Block(Axis::X), threads, number);
        (number, Type::U64)
    }

    fn store_own(&mut self, block: &mut Block, at: usize, own: Operand) {
        let id = self.outputs[at];
        let ty = self.draft.buffers[id.0 as usize].element;
        let value = self.operand(ty);
        block.push(statement(StatementKind::Store { memory: MemoryOperand::Buffer(id), index: own, value }));
    }

    fn statement(&mut self, block: &mut Block, own: Operand) {
        self.fuel = self.fuel.saturating_sub(1);
        if self.tiled.is_some() && self.random.below(4) == 0 {
            return self.tile(block);
        }
        match self.random.below(36) {
            0..=16 => self.operation(block),
            17 => self.declare_variable(block),
            18 => self.assign(block),
            19 | 20 => self.branch(block, own),
            21 => self.count(block, own),
            22 => self.repeat(block, own),
            23 => self.leave(block, own),
            24 => self.atomic(block),
            25 | 26 => self.share(block),
            27 => {
                let at = self.random.below(self.outputs.len());
                self.store_own(block, at, own);
            }
            28 => self.load_own(block, own),
            29 => self.guard(block, own),
            30 => self.walk(block, own),
            31 => self.load_beside(block, own),
            32 => self.store_beside(block, own),
            33 | 34 => self.meet(block, own),
            _ => {
                let scope = MemoryScope::ALL[self.random.below(3)];
                block.push(statement(StatementKind::Fence(scope)));
            }
        }
    }

    /// Loads what this thread stored before, or something out of range.
    fn load_own(&mut self, block: &mut Block, own: Operand) {
        let id = self.outputs[self.random.below(self.outputs.len())];
        let ty = self.draft.buffers[id.0 as usize].element;
        let far = Literal::from(u64::MAX - self.random.below(5) as u64).into();
        let index = if self.random.below(3) == 0 { far } else { own };
        self.add(block, Op::Load { memory: MemoryOperand::Buffer(id), index }, ty);
    }

    fn declare_variable(&mut self, block: &mut Block) {
        let ty = self.any_type();
        let initial = Some(self.operand(ty));
        self.draft.variables.push(Variable { name: None, ty });
        let variable = VariableId(self.draft.variables.len() as u32 - 1);
        block.push(statement(StatementKind::Declare { variable, initial }));
        self.variables.push((variable, ty));
    }

    fn assign(&mut self, block: &mut Block) {
        if self.variables.is_empty() {
            return self.declare_variable(block);
        }
        let (variable, ty) = self.variables[self.random.below(self.variables.len())];
        let value = self.operand(ty);
        block.push(statement(StatementKind::Assign { variable, value }));
    }

    /// A nested block; its values and variables go out of scope at its end.
    pub(super) fn inner(
        &mut self,
        uniform: bool,
        own: Operand,
        write: impl FnOnce(&mut Self, &mut Block),
    ) -> Block {
        let (values, variables) = (self.scope.len(), self.variables.len());
        let before = self.uniform;
        self.uniform &= uniform;
        let mut block = Block::new();
        write(self, &mut block);
        for _ in 0..self.random.below(4) {
            self.statement(&mut block, own);
        }
        // Threads that left inside do not come back.
        self.uniform = before && (self.uniform || !uniform);
        self.scope.truncate(values);
        self.variables.truncate(variables);
        block
    }

    fn branch(&mut self, block: &mut Block, own: Operand) {
        if self.fuel < 2 {
            return self.operation(block);
        }
        let condition = self.operand(Type::Bool);
        let returned = self.returns;
        let then = self.inner(false, own, |_, _| {});
        let otherwise =
            if self.random.below(2) == 0 { self.inner(false, own, |_, _| {}) } else { Block::new() };
        block.push(statement(StatementKind::If { condition, then, otherwise }));
        self.uniform &= returned == self.returns;
    }

    fn count(&mut self, block: &mut Block, own: Operand) {
        if self.uniform_loops + self.other_loops > 1 || self.fuel < 2 {
            return self.operation(block);
        }
        let types = [Type::U8, Type::I8, Type::U32, Type::I32, Type::U64, Type::I64, Type::I16, Type::U16];
        let ty = types[self.random.below(types.len())];
        let literal = |bits: u64| Operand::from(Literal::new(ty, bits));
        // Near zero, or up to the last number of the type.
        let most = if ty.is_signed() { ty.mask() >> 1 } else { ty.mask() };
        let (start, end) = match self.random.below(3) {
            0 => (most - self.random.below(6) as u64, most),
            _ => (self.random.below(3) as u64, self.random.below(ROUNDS) as u64 + 1),
        };
        let returned = self.returns;
        let uniform = self.random.below(2) == 0;
        let step = match self.random.below(2) {
            0 => literal(self.random.below(3) as u64 + 1),
            _ => self.computed_step(block, ty, uniform),
        };
        let scope = self.scope.len();
        let value = self.add_value(ty);
        let [together, apart] = [uniform, !uniform].map(usize::from);
        (self.uniform_loops, self.other_loops) = (self.uniform_loops + together, self.other_loops + apart);
        let body = self.inner(uniform, own, |_, _| {});
        (self.uniform_loops, self.other_loops) = (self.uniform_loops - together, self.other_loops - apart);
        self.scope.truncate(scope);
        block.push(statement(StatementKind::For {
            value,
            start: literal(start),
            end: literal(end),
            step,
            body,
        }));
        self.uniform &= returned == self.returns;
    }

    /// A step that only the launch knows, at least 1; the same for all threads if they stay together.
    fn computed_step(&mut self, block: &mut Block, ty: Type, uniform: bool) -> Operand {
        let scope = self.scope.len();
        let any = match uniform {
            true => {
                let blocks = self.add(block, Op::Builtin(Builtin::GridDim(Axis::X)), Type::U32);
                self.add(block, Op::Convert { from: Type::U32, to: ty, a: blocks }, ty)
            }
            false => self.operand(ty),
        };
        let (op, b) = (BinaryOp::Max, Literal::new(ty, 1).into());
        let step = self.add(block, Op::Binary { op, ty, a: any, b }, ty);
        self.scope.truncate(scope);
        step
    }

    /// Counts a variable up to a few rounds, all threads together or each as long as something holds.
    fn repeat(&mut self, block: &mut Block, own: Operand) {
        if self.uniform_loops + self.other_loops > 1 || self.fuel < 2 {
            return self.operation(block);
        }
        let returned = self.returns;
        self.draft.variables.push(Variable { name: None, ty: Type::U32 });
        let variable = VariableId(self.draft.variables.len() as u32 - 1);
        let zero = Some(Literal::from(0u32).into());
        block.push(statement(StatementKind::Declare { variable, initial: zero }));
        let rounds: Operand = Literal::from(self.random.below(ROUNDS) as u32).into();
        let scope = self.scope.len();
        let mut condition = Block::new();
        let now = self.add(&mut condition, Op::Read(variable), Type::U32);
        let below = Op::Compare { op: CompareOp::Lt, ty: Type::U32, a: now, b: rounds };
        let mut test = self.add(&mut condition, below, Type::Bool);
        let uniform = self.random.below(3) == 0;
        if !uniform {
            let also = self.operand(Type::Bool);
            let both = Op::Binary { op: BinaryOp::And, ty: Type::Bool, a: test, b: also };
            test = self.add(&mut condition, both, Type::Bool);
        }
        self.scope.truncate(scope);
        let [together, apart] = [uniform, !uniform].map(usize::from);
        (self.uniform_loops, self.other_loops) = (self.uniform_loops + together, self.other_loops + apart);
        let body = self.inner(uniform, own, |generator, block| {
            // Counted first, so that skipping the rest of a round still counts it.
            let ty = Type::U32;
            let now = generator.add(block, Op::Read(variable), ty);
            let next = Op::Binary { op: BinaryOp::Add, ty, a: now, b: Literal::from(1u32).into() };
            let value = generator.add(block, next, ty);
            block.push(statement(StatementKind::Assign { variable, value }));
        });
        (self.uniform_loops, self.other_loops) = (self.uniform_loops - together, self.other_loops - apart);
        block.push(statement(StatementKind::While { condition, test, body }));
        self.uniform &= returned == self.returns;
    }

    /// Some threads leave the loop, its round, or the program.
    fn leave(&mut self, block: &mut Block, own: Operand) {
        let condition = self.operand(Type::Bool);
        let in_loop = self.other_loops > 0;
        let kind = match self.random.below(3) {
            0 if in_loop => StatementKind::Break,
            1 if in_loop => StatementKind::Continue,
            // A loop of all threads may have met before the return that some of them take in its first round.
            _ if self.uniform_loops == 0 && self.random.below(3) == 0 => {
                self.returns += 1;
                self.uniform = false;
                StatementKind::Return
            }
            _ => return self.operation(block),
        };
        let mut then = Block::new();
        if kind == StatementKind::Return {
            let scope = self.scope.len();
            self.store_digest(&mut then, own);
            self.scope.truncate(scope);
        }
        then.push(statement(kind));
        block.push(statement(StatementKind::If { condition, then, otherwise: Block::new() }));
    }

    fn atomic(&mut self, block: &mut Block) {
        let Some((id, op)) = self.atomics.first().copied() else { return self.operation(block) };
        self.change(block, MemoryOperand::Buffer(id), op, &MemoryScope::ALL[1..]);
    }

    /// An atomic with any order, for one of some scopes.
    fn change(&mut self, block: &mut Block, memory: MemoryOperand, op: AtomicOp, scopes: &[MemoryScope]) {
        let ty = match memory {
            MemoryOperand::Buffer(id) => self.draft.buffers[id.0 as usize].element,
            MemoryOperand::Shared(id) => self.draft.shared[id.0 as usize].element,
        };
        let (index, value) = (self.index(), self.operand(ty));
        let order = MemoryOrder::ALL[self.random.below(MemoryOrder::ALL.len())];
        let scope = scopes[self.random.below(scopes.len())];
        let op = Op::Atomic { op, memory, index, value, expected: None, order, scope };
        let old = self.add(block, op, ty);
        // What was there before depends on the order of threads.
        self.scope.retain(|(id, _)| Operand::from(*id) != old);
    }

    /// Every thread stores its own element of shared memory and loads any, with barriers around.
    fn share(&mut self, block: &mut Block) {
        if self.draft.shared.is_empty() || !self.uniform {
            return self.operation(block);
        }
        let (memory, element) = (MemoryOperand::Shared(SharedId(0)), self.draft.shared[0].element);
        let [width, height, _] = self.draft.block;
        let barrier = || statement(StatementKind::Barrier(BarrierScope::Block));
        let mut number: Operand = Literal::zero(Type::U32).into();
        for (axis, factor) in [(Axis::X, 1), (Axis::Y, width), (Axis::Z, width * height)] {
            let part = self.add(block, Op::Builtin(Builtin::Thread(axis)), Type::U32);
            let (ty, b) = (Type::U32, Literal::from(factor).into());
            let scaled = self.add(block, Op::Binary { op: BinaryOp::Mul, ty, a: part, b }, ty);
            number = self.add(block, Op::Binary { op: BinaryOp::Add, ty, a: scaled, b: number }, ty);
        }
        let value = self.operand(element);
        block.push(statement(StatementKind::Store { memory, index: number, value }));
        block.push(barrier());
        if ATOMIC_TYPES.contains(&element) {
            // All threads do the same between two barriers, so the order in which they come does not matter.
            let op = ATOMIC_OPS[self.random.below(ATOMIC_OPS.len())];
            self.change(block, memory, op, &MemoryScope::ALL[..2]);
            block.push(barrier());
        }
        for _ in 0..=self.random.below(2) {
            let index = self.index();
            self.add(block, Op::Load { memory, index }, element);
        }
        block.push(barrier());
    }
}
