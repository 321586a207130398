//! Operations with operands that are there, or literals.

use kiln_ir::{
    Axis, BinaryOp, BlockVote, Builtin, CompareOp, Literal, MathFunction, MemoryOperand, Op, Operand,
    ScalarId, SharedId, Statement, StatementKind, Type, UnaryOp, WarpOp,
};

use super::Generator;

pub(super) const INTEGERS: [Type; 8] =
    [Type::U8, Type::U16, Type::U32, Type::U64, Type::I8, Type::I16, Type::I32, Type::I64];
const FLOATS: [Type; 4] = [Type::F16, Type::Bf16, Type::F32, Type::F64];

impl Generator {
    /// A literal that is often at an edge of its type.
    pub(super) fn literal(&mut self, ty: Type) -> Literal {
        let bits = match self.random.below(8) {
            0 => 0,
            1 => 1,
            2 => u64::MAX,
            3 => 1 << (ty.bits() - 1),
            4 => (1 << (ty.bits() - 1)) - 1,
            5 => self.random.next() % 100,
            _ => self.random.next(),
        };
        if !ty.is_float() {
            return Literal::new(ty, bits);
        }
        let value = match self.random.below(12) {
            0 => f64::NAN,
            1 => f64::INFINITY,
            2 => f64::NEG_INFINITY,
            3 => 0.0,
            4 => -0.0,
            5 => 1.0,
            6 => self.random.below(2000) as f64 - 1000.0,
            7 | 8 => (self.random.below(2000) as f64 - 1000.0) / 64.0,
            9 => f64::from_bits(self.random.next()),
            // Any bits: subnormal numbers and NaN of every kind too.
            _ => return Literal::new(ty, self.random.next()),
        };
        Literal::float(ty, value)
    }

    /// An operand of a type: mostly a value in scope.
    pub(super) fn operand(&mut self, ty: Type) -> Operand {
        let values: Vec<_> = self.scope.iter().filter(|(_, found)| *found == ty).map(|(id, _)| *id).collect();
        match values.len() {
            0 => self.literal(ty).into(),
            _ if self.random.below(4) == 0 => self.literal(ty).into(),
            // Values that were made last are used most, so that chains come about.
            count => {
                let back = self.random.below(count).min(self.random.below(count));
                values[count - 1 - back].into()
            }
        }
    }

    fn one_of(&mut self, types: &[Type]) -> Type {
        types[self.random.below(types.len())]
    }

    /// An index: often small, sometimes anything.
    pub(super) fn index(&mut self) -> Operand {
        let ty = self.one_of(&INTEGERS);
        match self.random.below(3) {
            0 => Literal::new(ty, self.random.next() % 10).into(),
            1 => Literal::new(ty, (self.random.next() % 4).wrapping_neg()).into(),
            _ => self.operand(ty),
        }
    }

    /// Adds one operation to a block; its result is in scope.
    pub(super) fn operation(&mut self, block: &mut Vec<Statement>) {
        let (op, ty) = match self.random.below(17) {
            0 | 1 => self.unary(),
            2..=5 => self.binary(),
            6 | 7 => {
                let ty = self.any_type();
                let ops: Vec<_> = CompareOp::ALL.iter().filter(|op| op.accepts(ty)).collect();
                let op = *ops[self.random.below(ops.len())];
                (Op::Compare { op, ty, a: self.operand(ty), b: self.operand(ty) }, Type::Bool)
            }
            8 => {
                let ty = self.any_type();
                let condition = self.operand(Type::Bool);
                (Op::Select { ty, condition, a: self.operand(ty), b: self.operand(ty) }, ty)
            }
            9 => {
                let ty = self.one_of(&FLOATS);
                (Op::Fma { ty, a: self.operand(ty), b: self.operand(ty), c: self.operand(ty) }, ty)
            }
            10 | 11 => {
                let (from, to) = (self.any_type(), self.any_type());
                (Op::Convert { from, to, a: self.operand(from) }, to)
            }
            12 => return self.bitcast(block),
            13 => self.builtin(),
            14 => self.parameter(),
            15 => self.load(),
            _ if self.uniform => self.together(),
            _ => self.load(),
        };
        let value = self.add(block, op, ty);
        self.observe(block, value, ty);
    }

    pub(super) fn add(&mut self, block: &mut Vec<Statement>, op: Op, ty: Type) -> Operand {
        let value = self.add_value(ty);
        block.push(statement(StatementKind::Let { value, op }));
        value.into()
    }

    fn unary(&mut self) -> (Op, Type) {
        if self.random.below(8) == 0 {
            let ty = self.one_of(&FLOATS);
            let functions: Vec<_> =
                MathFunction::ALL.iter().filter(|function| function.accepts(ty)).collect();
            let function = *functions[self.random.below(functions.len())];
            return (Op::Function { function, ty, a: self.operand(ty) }, ty);
        }
        let ty = self.any_type();
        let ops: Vec<_> = UnaryOp::ALL.iter().filter(|op| op.accepts(ty)).collect();
        let op = *ops[self.random.below(ops.len())];
        (Op::Unary { op, ty, a: self.operand(ty) }, op.result(ty))
    }

    fn binary(&mut self) -> (Op, Type) {
        let ty = self.any_type();
        let ops: Vec<_> = BinaryOp::ALL.iter().filter(|op| op.accepts(ty)).collect();
        let op = *ops[self.random.below(ops.len())];
        let b = match op.second(ty) == ty {
            false if self.random.below(2) == 0 => Literal::from(self.random.below(70) as u32).into(),
            _ => self.operand(op.second(ty)),
        };
        (Op::Binary { op, ty, a: self.operand(ty), b }, ty)
    }

    /// The bits of a float are only looked at where it is no NaN.
    fn bitcast(&mut self, block: &mut Vec<Statement>) {
        let from = self.one_of(
            &[
                INTEGERS,
                [Type::F16, Type::Bf16, Type::F32, Type::F64, Type::U32, Type::I32, Type::U64, Type::I64],
            ]
            .concat(),
        );
        let same: Vec<Type> =
            Type::ALL.iter().copied().filter(|to| to.bytes() == from.bytes() && *to != Type::Bool).collect();
        let to = self.one_of(&same);
        let a = self.operand(from);
        let bits = self.add(block, Op::Bitcast { from, to, a }, to);
        if from.is_float() {
            let number = self.add(block, Op::Compare { op: CompareOp::Eq, ty: from, a, b: a }, Type::Bool);
            // The bits of a NaN must not be used by anything else.
            self.scope.retain(|(id, _)| Operand::from(*id) != bits);
            let zero = Literal::zero(to).into();
            self.add(block, Op::Select { ty: to, condition: number, a: bits, b: zero }, to);
        }
    }

    fn builtin(&mut self) -> (Op, Type) {
        let axis = Axis::ALL[self.random.below(3)];
        let builtin = match self.random.below(7) {
            0 => Builtin::Thread(axis),
            1 => Builtin::Block(axis),
            2 => Builtin::BlockDim(axis),
            3 => Builtin::GridDim(axis),
            4 => Builtin::Global(axis),
            5 => Builtin::Lane,
            _ => Builtin::Warp,
        };
        (Op::Builtin(builtin), builtin.ty())
    }

    fn parameter(&mut self) -> (Op, Type) {
        if !self.draft.scalars.is_empty() {
            let at = self.random.below(self.draft.scalars.len());
            return (Op::Parameter(ScalarId(at as u32)), self.draft.scalars[at].ty);
        }
        let memory = match self.draft.shared.is_empty() {
            false if self.random.below(2) == 0 => MemoryOperand::Shared(SharedId(0)),
            _ => MemoryOperand::Buffer(self.inputs[0]),
        };
        (Op::Length(memory), Type::U64)
    }

    fn load(&mut self) -> (Op, Type) {
        if !self.variables.is_empty() && self.random.below(3) == 0 {
            let (variable, ty) = self.variables[self.random.below(self.variables.len())];
            return (Op::Read(variable), ty);
        }
        let id = self.inputs[self.random.below(self.inputs.len())];
        let ty = self.draft.buffers[id.0 as usize].element;
        (Op::Load { memory: MemoryOperand::Buffer(id), index: self.index() }, ty)
    }

    /// Something the threads of a warp or block do together.
    fn together(&mut self) -> (Op, Type) {
        if self.random.below(4) == 0 {
            let vote = BlockVote::ALL[self.random.below(3)];
            return (Op::BlockVote { vote, a: self.operand(Type::Bool) }, vote.result());
        }
        let op = WarpOp::ALL[self.random.below(WarpOp::ALL.len())];
        let types: Vec<Type> = Type::ALL.iter().copied().filter(|ty| op.accepts(*ty)).collect();
        let ty = self.one_of(&types);
        let by = op.is_shuffle().then(|| match self.random.below(2) {
            0 => Literal::from(self.random.below(36) as u32).into(),
            _ => self.operand(Type::U32),
        });
        (Op::Warp { op, ty, a: self.operand(ty), by }, op.result(ty))
    }
}

pub(super) fn statement(kind: StatementKind) -> Statement {
    Statement { kind, location: kiln_ir::SourceLocation::Unknown }
}
