//! Integer arithmetic.

use super::super::alu::packed::{self, PairOp};
use super::super::alu::{Alu, Mode, SimpleOp, integer};
use super::super::lowered_code::{Carry, CarryKind, Op};
use super::super::undefined::DataFlow;
use super::function::Lowering;
use crate::{Flag, Form, Opcode, Part, PtxOperand, ScalarKind, ScalarType};

impl Lowering<'_> {
    pub(super) fn lower_integer(&mut self, form: &Form, operands: &[PtxOperand]) -> Option<()> {
        let ty = form.ty()?;
        if let Some(kind) = carry_kind(form) {
            return self.lower_carry(form, operands, kind);
        }
        match form.opcode() {
            Opcode::Mul | Opcode::Mad => {
                let part = form.part().unwrap_or(Part::Lo);
                let run = match part {
                    Part::Lo => integer::multiply_low(ty)?,
                    Part::Hi if form.has(Flag::Sat) => integer::multiply_high_saturating(),
                    Part::Hi => integer::multiply_high(ty)?,
                    Part::Wide => integer::multiply_wide(ty)?,
                };
                let sum = if part == Part::Wide { twice(ty)? } else { ty };
                let bits = (8 * ty.size_bytes()) as u8;
                let flow = match part {
                    Part::Hi if form.has(Flag::Sat) => DataFlow::Computes,
                    Part::Hi => DataFlow::HighProduct(bits),
                    Part::Lo | Part::Wide => DataFlow::Product(bits),
                };
                let simple = simple_product(form, part, ty);
                let mode = Mode { flow, simple, ..Mode::default() };
                self.emit_alu_typed(run, mode, operands, [ty, ty, sum, ty])
            }
            Opcode::Dp4a | Opcode::Dp2a => {
                let mut signed = form.types().map(|ty| ty == ScalarType::S32);
                let (a, b) = (signed.next()?, signed.next()?);
                let high = form.part() == Some(Part::Hi);
                let (run, flow) = match form.opcode() {
                    Opcode::Dp4a => (packed::dot4(a, b), DataFlow::BytesProduct),
                    _ => (packed::dot2(a, b, high), DataFlow::HalvesProduct { high }),
                };
                self.emit_alu(run, Mode { flow, ..Mode::default() }, operands, ScalarType::B32)
            }
            _ => {
                let run = simple(form, ty)?;
                let mode = Mode { flow: flow_of(form, ty), simple: simple_op(form, ty), ..Mode::default() };
                self.emit_alu(run, mode, operands, ty)
            }
        }
    }

    fn lower_carry(&mut self, form: &Form, operands: &[PtxOperand], kind: CarryKind) -> Option<()> {
        let ty = form.ty()?;
        let reads = matches!(form.opcode(), Opcode::Addc | Opcode::Subc | Opcode::Madc);
        let to = self.destination(operands.first()?)?;
        let zero = self.constant(0);
        let mut from = [zero; 3];
        for (slot, operand) in from.iter_mut().zip(operands.get(1..)?) {
            *slot = self.source(operand, ty)?;
        }
        let writes = form.has(Flag::Cc);
        self.emit(Op::Carry(Box::new(Carry { kind, ty, reads, writes, to, from })));
        Some(())
    }
}

/// How the instruction uses the carry flag, if it does.
fn carry_kind(form: &Form) -> Option<CarryKind> {
    let high = form.part() == Some(Part::Hi);
    match form.opcode() {
        Opcode::Addc => Some(CarryKind::Add),
        Opcode::Subc => Some(CarryKind::Subtract),
        Opcode::Madc => Some(CarryKind::MultiplyAdd { high }),
        Opcode::Add if form.has(Flag::Cc) => Some(CarryKind::Add),
        Opcode::Sub if form.has(Flag::Cc) => Some(CarryKind::Subtract),
        Opcode::Mad if form.has(Flag::Cc) => Some(CarryKind::MultiplyAdd { high }),
        _ => None,
    }
}

/// What arithmetic does with undefined bits.
fn flow_of(form: &Form, ty: ScalarType) -> DataFlow {
    let high = form.part() == Some(Part::Hi);
    match form.opcode() {
        _ if matches!(ty, ScalarType::U16x2 | ScalarType::S16x2) => DataFlow::Parts { from: 16, to: 16 },
        _ if form.has(Flag::Sat) || form.has(Flag::Relu) => DataFlow::Computes,
        Opcode::Add => DataFlow::Sum,
        Opcode::Sub => DataFlow::Difference,
        Opcode::Neg => DataFlow::Negation,
        Opcode::Min | Opcode::Max => DataFlow::Extreme {
            bits: (8 * ty.size_bytes()) as u8,
            signed: ty.kind() == ScalarKind::Signed,
            smaller: form.opcode() == Opcode::Min,
        },
        Opcode::Mul24 | Opcode::Mad24 if high => DataFlow::HighProduct(24),
        Opcode::Mul24 | Opcode::Mad24 => DataFlow::Product(24),
        _ => DataFlow::Computes,
    }
}

/// Arithmetic whose operands all have one type.
fn simple(form: &Form, ty: ScalarType) -> Option<Alu> {
    let sat = form.has(Flag::Sat);
    let relu = form.has(Flag::Relu);
    let packed = matches!(ty, ScalarType::U16x2 | ScalarType::S16x2);
    match form.opcode() {
        Opcode::Add if packed => packed::pair(PairOp::Add, ty, false),
        Opcode::Min if packed => packed::pair(PairOp::Minimum, ty, relu),
        Opcode::Max if packed => packed::pair(PairOp::Maximum, ty, relu),
        Opcode::Add if sat => Some(integer::add_saturating(false)),
        Opcode::Sub if sat => Some(integer::add_saturating(true)),
        Opcode::Add => integer::add(ty),
        Opcode::Sub => integer::subtract(ty),
        Opcode::Div => integer::divide(ty),
        Opcode::Rem => integer::remainder(ty),
        Opcode::Abs => integer::absolute(ty),
        Opcode::Neg => integer::negate(ty),
        Opcode::Min if relu => Some(integer::extreme_relu(true)),
        Opcode::Max if relu => Some(integer::extreme_relu(false)),
        Opcode::Min => integer::minimum(ty),
        Opcode::Max => integer::maximum(ty),
        Opcode::Sad => integer::sum_of_difference(ty),
        Opcode::Mul24 | Opcode::Mad24 if sat => Some(integer::multiply24_saturating()),
        Opcode::Mul24 | Opcode::Mad24 => {
            Some(integer::multiply24(ty == ScalarType::S32, form.part() == Some(Part::Hi)))
        }
        _ => None,
    }
}

/// The name of a product.
fn simple_product(form: &Form, part: Part, ty: ScalarType) -> SimpleOp {
    use ScalarType::{B32, B64, S32, S64, U32, U64};
    match (part, ty) {
        _ if form.has(Flag::Sat) => SimpleOp::None,
        (Part::Lo, B32 | U32 | S32) => SimpleOp::MultiplyAdd32,
        (Part::Lo, B64 | U64 | S64) => SimpleOp::MultiplyAdd64,
        (Part::Wide, U32) => SimpleOp::MultiplyWideUnsigned,
        (Part::Wide, S32) => SimpleOp::MultiplyWideSigned,
        _ => SimpleOp::None,
    }
}

/// The name of other arithmetic.
fn simple_op(form: &Form, ty: ScalarType) -> SimpleOp {
    use ScalarType::{B32, B64, S32, S64, U32, U64};
    if form.has(Flag::Sat) || form.has(Flag::Relu) {
        return SimpleOp::None;
    }
    match (form.opcode(), ty) {
        (Opcode::Add, B32 | U32 | S32) => SimpleOp::Add32,
        (Opcode::Sub, B32 | U32 | S32) => SimpleOp::Subtract32,
        (Opcode::Add, B64 | U64 | S64) => SimpleOp::Add64,
        (Opcode::Sub, B64 | U64 | S64) => SimpleOp::Subtract64,
        (Opcode::Min, U32) => SimpleOp::MinimumUnsigned32,
        (Opcode::Max, U32) => SimpleOp::MaximumUnsigned32,
        (Opcode::Min, S32) => SimpleOp::MinimumSigned32,
        (Opcode::Max, S32) => SimpleOp::MaximumSigned32,
        _ => SimpleOp::None,
    }
}

/// The type of a wide product.
fn twice(ty: ScalarType) -> Option<ScalarType> {
    Some(match ty {
        ScalarType::U16 => ScalarType::U32,
        ScalarType::S16 => ScalarType::S32,
        ScalarType::U32 => ScalarType::U64,
        ScalarType::S32 => ScalarType::S64,
        _ => return None,
    })
}
