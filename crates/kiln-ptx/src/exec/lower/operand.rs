//! Operands: registers become columns, numbers become constants, names become addresses.

use super::super::lowered_code::{Address, Base, Constant, Op, Pred, PredSource, Reg, Source, Special};
use super::super::memory::generic_address::{Place, code_address};
use super::function::Lowering;
use crate::{
    AddressBase, Axis, Immediate, PtxOperand, RegisterId, ScalarKind, ScalarType, Space, SpecialRegister,
    VariableId,
};

impl Lowering<'_> {
    /// The first column of a register; wide and vector registers have several.
    pub(super) fn column(&mut self, id: RegisterId) -> Option<Reg> {
        if let Some(column) = self.columns.get(&id.0) {
            return Some(Reg(*column));
        }
        let group = self.function.registers.group(id)?;
        if group.ty == ScalarType::Pred {
            return None;
        }
        let parts = u32::from(group.vector.max(1)) * group.ty.size_bytes().div_ceil(8).max(1);
        let column = self.column_count;
        self.column_count += parts;
        self.columns.insert(id.0, column);
        Some(Reg(column))
    }

    /// A column no register of the code uses.
    pub(super) fn scratch(&mut self) -> Reg {
        self.column_count += 1;
        Reg(self.column_count - 1)
    }

    /// The predicate of a register.
    pub(super) fn predicate(&mut self, id: RegisterId) -> Option<Pred> {
        if self.function.registers.ty(id)? != ScalarType::Pred {
            return None;
        }
        let next = Pred::FIRST + self.predicates.len() as u32;
        Some(Pred(*self.predicates.entry(id.0).or_insert(next)))
    }

    /// A predicate no register of the code uses.
    pub(super) fn scratch_predicate(&mut self) -> Pred {
        let next = Pred::FIRST + self.predicates.len() as u32;
        // Registers are numbered from 0, so numbers from the top are free.
        self.predicates.insert(u32::MAX - next, next);
        Pred(next)
    }

    /// Bytes of the register behind an operand; 0 if it is none.
    pub(super) fn register_bytes(&self, operand: &PtxOperand) -> u32 {
        match operand {
            PtxOperand::Register(id) | PtxOperand::Element(id, _) => {
                self.function.registers.ty(*id).map_or(0, ScalarType::size_bytes)
            }
            _ => 0,
        }
    }

    /// Where a result goes.
    pub(super) fn destination(&mut self, operand: &PtxOperand) -> Option<Reg> {
        match operand {
            PtxOperand::Register(id) => self.column(*id),
            PtxOperand::Element(id, axis) => Some(Reg(self.column(*id)?.0 + axis.index() as u32)),
            PtxOperand::Pair(Some(id), _) => self.column(*id),
            PtxOperand::Pair(None, _) | PtxOperand::Sink => Some(Reg(0)),
            _ => None,
        }
    }

    /// Where a truth value goes.
    pub(super) fn predicate_destination(&mut self, operand: &PtxOperand) -> Option<Pred> {
        match operand {
            PtxOperand::Register(id) => self.predicate(*id),
            PtxOperand::Sink => Some(Pred::SINK),
            _ => None,
        }
    }

    /// The two results of `p|q`, or the one of `p`.
    pub(super) fn predicate_pair(&mut self, operand: &PtxOperand) -> Option<(Pred, Pred)> {
        match operand {
            PtxOperand::Pair(first, second) => {
                let mut one = |id: &Option<RegisterId>| id.map_or(Some(Pred::SINK), |id| self.predicate(id));
                Some((one(first)?, one(second)?))
            }
            other => Some((self.predicate_destination(other)?, Pred::SINK)),
        }
    }

    /// The predicate of `d|p`; the sink if only `d` is written.
    pub(super) fn second_result(&mut self, operand: &PtxOperand) -> Option<Pred> {
        match operand {
            PtxOperand::Pair(_, Some(id)) => self.predicate(*id),
            _ => Some(Pred::SINK),
        }
    }

    /// A truth value that is read.
    pub(super) fn predicate_source(&mut self, operand: &PtxOperand) -> Option<PredSource> {
        match operand {
            PtxOperand::Register(id) => Some(PredSource { pred: self.predicate(*id)?, negated: false }),
            PtxOperand::Not(id) => Some(PredSource { pred: self.predicate(*id)?, negated: true }),
            PtxOperand::Immediate(number) => {
                Some(PredSource { pred: Pred::TRUE, negated: number.bits() == 0 })
            }
            _ => None,
        }
    }

    pub(super) fn constant(&mut self, bits: u64) -> Source {
        self.out.constant(Constant::Bits(bits))
    }

    /// A value of type `ty` that is read.
    pub(super) fn source(&mut self, operand: &PtxOperand, ty: ScalarType) -> Option<Source> {
        match operand {
            PtxOperand::Register(_) | PtxOperand::Element(..) => self.destination(operand).map(Source::from),
            PtxOperand::Immediate(number) => Some(self.constant(immediate_bits(*number, ty))),
            PtxOperand::Special(special) => {
                let which = self.special(*special)?;
                let to = self.scratch();
                self.emit_always(Op::Special { to, which });
                Some(to.into())
            }
            PtxOperand::Variable(id, offset) => self.variable_address(*id, *offset),
            PtxOperand::Function(id) => {
                let address = code_address(self.context.module.resolve_alias(*id).0);
                Some(self.constant(address))
            }
            _ => None,
        }
    }

    /// What the executor answers for a special register.
    pub(super) fn special(&self, register: SpecialRegister) -> Option<Special> {
        match register {
            SpecialRegister::Named(name, axis) => {
                let reserved = self.context.layout.reserved(name).map(Special::Constant);
                reserved.or_else(|| Special::named(name, axis))
            }
            SpecialRegister::Env(number) => Some(Special::Environment(number)),
        }
    }

    /// The address of a variable in its own space.
    fn variable_address(&mut self, id: VariableId, offset: i64) -> Option<Source> {
        let (_, address) = self.variable(id, offset)?;
        match address.base {
            Base::Zero => Some(self.constant(address.offset as u64)),
            Base::Frame => {
                let to = self.scratch();
                self.emit_always(Op::FrameAddress { to, offset: address.offset });
                Some(to.into())
            }
            Base::Value(_) => {
                let at = self.context.variables.place(id)?;
                Some(self.out.constant(Constant::Variable(at, offset)))
            }
        }
    }

    /// Where a variable lies.
    pub(super) fn variable(&mut self, id: VariableId, offset: i64) -> Option<(Place, Address)> {
        let variable = self.context.module.variable(id)?;
        match variable.space.base() {
            Space::Global | Space::Const => {
                let at = self.context.variables.place(id)?;
                let base = Base::Value(self.out.constant(Constant::Variable(at, 0)));
                Some((Place::Global, Address { base, offset }))
            }
            Space::Shared => {
                let start = self.context.layout.offset(id)?;
                Some((Place::Shared, Address { base: Base::Zero, offset: offset.wrapping_add(start as i64) }))
            }
            Space::Local | Space::Param => {
                let (place, start) = self.frame_place(id)?;
                let base = if place == Place::Param { Base::Zero } else { Base::Frame };
                Some((place, Address { base, offset: offset.wrapping_add(start as i64) }))
            }
            _ => None,
        }
    }

    /// A memory operand and the memory it reaches, for an instruction that names `place`.
    pub(super) fn address(&mut self, operand: &PtxOperand, place: Place) -> Option<(Place, Address)> {
        let PtxOperand::Address(address) = operand else { return None };
        match address.base {
            AddressBase::Register(id) => {
                let base = Base::Value(self.column(id)?.into());
                // The parameters of a device function live on its stack.
                let local = place == Place::Param && !self.function.is_entry();
                Some((if local { Place::Local } else { place }, Address { base, offset: address.offset }))
            }
            AddressBase::Variable(id) => self.variable(id, address.offset),
            AddressBase::Absolute => Some((place, Address { base: Base::Zero, offset: address.offset })),
        }
    }

    /// The operands in braces, the elements of a vector register, or the one operand alone.
    pub(super) fn parts(&self, operand: &PtxOperand) -> Vec<PtxOperand> {
        match operand {
            PtxOperand::Vector(elements) => self.body.elements(*elements).to_vec(),
            PtxOperand::Register(id) => {
                match self.function.registers.group(*id).map_or(1, |group| group.vector) {
                    0 | 1 => vec![*operand],
                    count => {
                        AXES.iter().take(count.into()).map(|axis| PtxOperand::Element(*id, *axis)).collect()
                    }
                }
            }
            other => vec![*other],
        }
    }
}

const AXES: [Axis; 4] = [Axis::X, Axis::Y, Axis::Z, Axis::W];

/// The bits of a number as a value of type `ty`.
pub(super) fn immediate_bits(number: Immediate, ty: ScalarType) -> u64 {
    let bits = match (ty, number) {
        (ScalarType::F32, Immediate::F64(bits)) => u64::from((f64::from_bits(bits) as f32).to_bits()),
        (ScalarType::F32, Immediate::Signed(value)) => u64::from((value as f32).to_bits()),
        (ScalarType::F64, Immediate::F32(bits)) => f64::from(f32::from_bits(bits)).to_bits(),
        (ScalarType::F64, Immediate::Signed(value)) => (value as f64).to_bits(),
        (_, other) => other.bits(),
    };
    match ty.kind() {
        ScalarKind::Predicate => u64::from(bits != 0),
        _ => bits & (u64::MAX >> (64 - 8 * ty.size_bytes().clamp(1, 8))),
    }
}
