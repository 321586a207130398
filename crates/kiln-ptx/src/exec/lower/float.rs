//! Floating-point arithmetic, comparison and selection.

use super::super::alu::half::{HalfOp, Layout, operation};
use super::super::alu::{Alu, Mode, SimpleOp, approximate, bits, compare, double, lanes, single};
use super::super::lowered_code::{Combine, Compare, Op, Pred, PredSource, Source};
use super::super::undefined::DataFlow;
use super::dispatch::{has_other, mode_of};
use super::function::Lowering;
use crate::{Flag, Form, Opcode, PtxOperand, ScalarKind, ScalarType};

impl Lowering<'_> {
    pub(super) fn lower_float(&mut self, form: &Form, operands: &[PtxOperand]) -> Option<()> {
        let ty = form.ty()?;
        // Operands of mixed precision have a second type.
        if has_other(form) || form.types().any(|other| other != ty) {
            return None;
        }
        if form.opcode() == Opcode::Testp {
            let test = compare::property(form.test()?, ty)?;
            let (to, _) = self.predicate_pair(operands.first()?)?;
            let a = self.source(operands.get(1)?, ty)?;
            return self.emit_compare(Compare {
                test,
                mode: Mode::default(),
                a,
                b: a,
                combine: None,
                to,
                opposite: Pred::SINK,
            });
        }
        let run = match layout(ty) {
            Some(layout) => operation(half_operation(form.opcode())?, layout),
            None => match ty {
                ScalarType::F32 => single_operation(form)?,
                ScalarType::F64 => double_operation(form)?,
                _ => return None,
            },
        };
        let flow = if is_packed(ty) { HALVES } else { DataFlow::Computes };
        let mode = mode_of(form);
        let simple = if mode.is_plain() { simple_op(form.opcode(), ty) } else { SimpleOp::None };
        self.emit_alu(run, Mode { flow, simple, ..mode }, operands, ty)
    }

    fn emit_compare(&mut self, compare: Compare) -> Option<()> {
        self.emit(Op::Compare(Box::new(compare)));
        Some(())
    }

    /// `setp` into predicates, `set` into a register.
    pub(super) fn lower_compare(&mut self, form: &Form, operands: &[PtxOperand]) -> Option<()> {
        let [first, a, b, rest @ ..] = operands else { return None };
        let ty = form.source_type()?;
        let combine = match (form.operation(), rest.first()) {
            (Some(operation), Some(operand)) => {
                Some((Combine::of(operation)?, self.predicate_source(operand)?))
            }
            (None, None) => None,
            _ => return None,
        };
        let test = compare::comparison(form.compare()?, ty)?;
        let (a, b) = (self.source(a, ty)?, self.source(b, ty)?);
        let sink = Pred::SINK;
        let flow = flow_of(form.compare()?, ty);
        let mode = mode_of(form);
        let simple = match ty {
            ScalarType::F32 if mode.ftz => SimpleOp::None,
            ScalarType::F32 => single_comparison(form.compare()?),
            _ => simple_comparison(form.compare()?, ty),
        };
        let mode = Mode { flow, simple, ..mode };
        let low = Compare { test, mode, a, b, combine, to: sink, opposite: sink };
        let packed = is_packed(ty);
        if form.opcode() == Opcode::Setp {
            let (to, second) = self.predicate_pair(first)?;
            if !packed {
                return self.emit_compare(Compare { to, opposite: second, ..low });
            }
            let high = self.upper_compare(low);
            self.emit_compare(Compare { to, ..low })?;
            return self.emit_compare(Compare { to: second, ..high });
        }
        // Each half of a pair has 16 bits of the result, also where that is an integer.
        let yes = if packed { true_bits(form.ty()?) & 0xffff } else { true_bits(form.ty()?) };
        let p = self.scratch_predicate();
        let pick = PredSource { pred: p, negated: false };
        let (set, zero) = (self.constant(yes), self.constant(0));
        self.emit_compare(Compare { to: p, ..low })?;
        if !packed {
            let to = self.destination(first)?;
            self.emit(Op::Select { to, a: set, b: zero, pick });
            return Some(());
        }
        let high = self.upper_compare(low);
        let q = self.scratch_predicate();
        self.emit_compare(Compare { to: q, ..high })?;
        let (below, above) = (self.scratch(), self.scratch());
        let set_above = self.constant(yes << 16);
        self.emit(Op::Select { to: below, a: set, b: zero, pick });
        self.emit(Op::Select {
            to: above,
            a: set_above,
            b: zero,
            pick: PredSource { pred: q, negated: false },
        });
        let mode = Mode { flow: DataFlow::OR, ..Mode::default() };
        self.emit_columns(bits::or(), mode, first, &[below.into(), above.into()])
    }

    /// The same comparison on the upper halves.
    fn upper_compare(&mut self, low: Compare) -> Compare {
        Compare { a: self.upper_half(low.a), b: self.upper_half(low.b), ..low }
    }

    fn upper_half(&mut self, from: Source) -> Source {
        let to = self.scratch();
        let zero = self.constant(0);
        let run = lanes!(|a| a >> 16 & 0xffff);
        let mode = Mode { flow: DataFlow::Moves(1), ..Mode::default() };
        self.emit_always(Op::Alu { run, mode, to, from: [from, zero, zero, zero] });
        to.into()
    }

    /// `selp` picks by a predicate, `slct` by a sign.
    pub(super) fn lower_select(&mut self, form: &Form, operands: &[PtxOperand]) -> Option<()> {
        let [to, a, b, c] = operands else { return None };
        let ty = form.ty()?;
        if form.opcode() == Opcode::Selp {
            let pick = self.predicate_source(c)?;
            let (a, b) = (self.source(a, ty)?, self.source(b, ty)?);
            let to = self.destination(to)?;
            self.emit(Op::Select { to, a, b, pick });
            return Some(());
        }
        let by = form.source_type()?;
        let run: Alu = match by {
            ScalarType::S32 => lanes!(|a, b, c| if c as i32 >= 0 { a } else { b }),
            ScalarType::F32 => lanes!(mode, |a, b, c| {
                let sign = f32::from_bits(single::operand(c, mode) as u32);
                if sign >= 0.0 { a } else { b }
            }),
            _ => return None,
        };
        let mode = Mode { flow: DataFlow::Moves(0b11), ..mode_of(form) };
        self.emit_alu_typed(run, mode, operands, [ty, ty, by, ty])
    }
}

/// Two halves are computed apart.
const HALVES: DataFlow = DataFlow::Parts { from: 16, to: 16 };

fn is_packed(ty: ScalarType) -> bool {
    layout(ty).is_some_and(Layout::is_packed)
}

/// What a comparison does with undefined bits.
fn flow_of(compare: crate::Compare, ty: ScalarType) -> DataFlow {
    use crate::Compare::{Eq, Hi, Hs, Lo, Ls, Ne};
    let bits = (8 * ty.size_bytes()).min(64) as u8;
    match (compare, ty.kind()) {
        (_, ScalarKind::Float) if is_packed(ty) => HALVES,
        (_, ScalarKind::Float) => DataFlow::Computes,
        (Eq | Ne, _) => DataFlow::Equality(bits),
        (Lo | Ls | Hi | Hs, _) => DataFlow::Order { bits, signed: false },
        (_, kind) => DataFlow::Order { bits, signed: kind == ScalarKind::Signed },
    }
}

/// The name of arithmetic.
fn simple_op(opcode: Opcode, ty: ScalarType) -> SimpleOp {
    match opcode {
        _ if ty != ScalarType::F32 => SimpleOp::None,
        Opcode::Add => SimpleOp::AddSingle,
        Opcode::Sub => SimpleOp::SubtractSingle,
        Opcode::Mul => SimpleOp::MultiplySingle,
        Opcode::Mad | Opcode::Fma => SimpleOp::FusedSingle,
        _ => SimpleOp::None,
    }
}

/// The name of a comparison.
fn simple_comparison(compare: crate::Compare, ty: ScalarType) -> SimpleOp {
    use crate::Compare::{Eq, Ge, Gt, Hi, Hs, Le, Lo, Ls, Lt, Ne};
    let is_signed = ty == ScalarType::S32;
    match compare {
        _ if !matches!(ty, ScalarType::B32 | ScalarType::U32 | ScalarType::S32) => SimpleOp::None,
        Eq => SimpleOp::Equal32,
        Ne => SimpleOp::Unequal32,
        Lt if is_signed => SimpleOp::LessSigned32,
        Le if is_signed => SimpleOp::LessEqualSigned32,
        Gt if is_signed => SimpleOp::GreaterSigned32,
        Ge if is_signed => SimpleOp::GreaterEqualSigned32,
        Lt | Lo => SimpleOp::LessUnsigned32,
        Le | Ls => SimpleOp::LessEqualUnsigned32,
        Gt | Hi => SimpleOp::GreaterUnsigned32,
        Ge | Hs => SimpleOp::GreaterEqualUnsigned32,
        _ => SimpleOp::None,
    }
}

/// The name of a comparison of `f32`.
fn single_comparison(compare: crate::Compare) -> SimpleOp {
    use crate::Compare as By;
    match compare {
        By::Eq => SimpleOp::EqualSingle,
        By::Ne => SimpleOp::UnequalSingle,
        By::Lt | By::Lo => SimpleOp::LessSingle,
        By::Le | By::Ls => SimpleOp::LessEqualSingle,
        By::Gt | By::Hi => SimpleOp::GreaterSingle,
        By::Ge | By::Hs => SimpleOp::GreaterEqualSingle,
        By::Equ => SimpleOp::EqualOrNan,
        By::Neu => SimpleOp::UnequalOrNan,
        By::Ltu => SimpleOp::LessOrNan,
        By::Leu => SimpleOp::LessEqualOrNan,
        By::Gtu => SimpleOp::GreaterOrNan,
        By::Geu => SimpleOp::GreaterEqualOrNan,
        By::Num => SimpleOp::NumbersSingle,
        By::Nan => SimpleOp::NanSingle,
    }
}

/// What `set` answers for true: all ones, or 1.0 in a float.
fn true_bits(ty: ScalarType) -> u64 {
    match ty {
        ScalarType::F32 => 0x3f80_0000,
        ScalarType::F16 | ScalarType::F16x2 => 0x3c00,
        ScalarType::Bf16 | ScalarType::Bf16x2 => 0x3f80,
        _ if ty.kind() == ScalarKind::Float => 0,
        _ => u64::MAX >> (64 - 8 * ty.size_bytes().clamp(1, 8)),
    }
}

/// How halves of a type lie in a register.
pub(super) fn layout(ty: ScalarType) -> Option<Layout> {
    Some(match ty {
        ScalarType::F16 => Layout::F16,
        ScalarType::F16x2 => Layout::F16x2,
        ScalarType::Bf16 => Layout::Bf16,
        ScalarType::Bf16x2 => Layout::Bf16x2,
        _ => return None,
    })
}

fn half_operation(opcode: Opcode) -> Option<HalfOp> {
    Some(match opcode {
        Opcode::Add => HalfOp::Add,
        Opcode::Sub => HalfOp::Subtract,
        Opcode::Mul => HalfOp::Multiply,
        Opcode::Fma => HalfOp::Fused,
        Opcode::Neg => HalfOp::Negate,
        Opcode::Abs => HalfOp::Absolute,
        Opcode::Min => HalfOp::Minimum,
        Opcode::Max => HalfOp::Maximum,
        Opcode::Ex2 => HalfOp::Exp2,
        Opcode::Tanh => HalfOp::Tanh,
        _ => return None,
    })
}

fn single_operation(form: &Form) -> Option<Alu> {
    let approx = form.has(Flag::Approx);
    Some(match form.opcode() {
        Opcode::Add => single::add(),
        Opcode::Sub => single::subtract(),
        Opcode::Mul => single::multiply(),
        Opcode::Mad | Opcode::Fma => single::fused(),
        Opcode::Div if approx => approximate::divide(),
        Opcode::Div if form.has(Flag::Full) => approximate::divide_full(),
        Opcode::Div => single::divide(),
        Opcode::Rcp if approx => approximate::reciprocal(),
        Opcode::Rcp => single::reciprocal(),
        Opcode::Sqrt if approx => approximate::root(),
        Opcode::Sqrt => single::root(),
        Opcode::Rsqrt => approximate::reciprocal_root(),
        Opcode::Sin => approximate::sine(),
        Opcode::Cos => approximate::cosine(),
        Opcode::Lg2 => approximate::log2(),
        Opcode::Ex2 => approximate::exp2(),
        Opcode::Tanh => approximate::tanh(),
        Opcode::Neg => single::negate(),
        Opcode::Abs => single::absolute(),
        Opcode::Min => single::minimum(),
        Opcode::Max => single::maximum(),
        Opcode::Copysign => single::copy_sign(),
        _ => return None,
    })
}

fn double_operation(form: &Form) -> Option<Alu> {
    Some(match form.opcode() {
        Opcode::Add => double::add(),
        Opcode::Sub => double::subtract(),
        Opcode::Mul => double::multiply(),
        Opcode::Mad | Opcode::Fma => double::fused(),
        Opcode::Div => double::divide(),
        Opcode::Rcp if form.has(Flag::Approx) => approximate::reciprocal_double(),
        Opcode::Rcp => double::reciprocal(),
        Opcode::Rsqrt => approximate::reciprocal_root_double(),
        Opcode::Sqrt => double::root(),
        Opcode::Neg => double::negate(),
        Opcode::Abs => double::absolute(),
        Opcode::Min => double::minimum(),
        Opcode::Max => double::maximum(),
        Opcode::Copysign => double::copy_sign(),
        _ => return None,
    })
}
