//! Emits conversions between types.

use super::integer::name;
use super::register::{Class, Register};
use super::writer::Writer;
use crate::literal::Literal;
use crate::operation::Operand;
use crate::scalar_type::Type;

impl Writer<'_> {
    pub(super) fn convert(&mut self, from: Type, to: Type, a: Operand) -> Register {
        if from == to && !(from == Type::F32 && self.draft.flush) {
            return self.register(a);
        }
        match (from, to) {
            (Type::Bool, _) => self.truth_to_number(to, a),
            (_, Type::Bool) => self.number_to_truth(from, a),
            _ if from.is_float() && to.is_float() => self.between_floats(from, to, a),
            _ if from.is_float() => self.float_to_integer(from, to, a),
            _ if to.is_float() => self.integer_to_float(from, to, a),
            _ => self.between_integers(from, to, a),
        }
    }

    fn truth_to_number(&mut self, to: Type, a: Operand) -> Register {
        let a = self.operand(a);
        let class = Class::of(to);
        if class == Class::B16 {
            let one = format!("{}", Literal::one(to).bits());
            let bits = self.compute(Class::B32, "selp.b32", &[&one, "0", &a]).to_string();
            return self.compute(Class::B16, "cvt.u16.u32", &[&bits]);
        }
        let [one, zero] = [Literal::one(to), Literal::zero(to)].map(super::writer::immediate);
        self.compute(class, &format!("selp.{}", class.name()), &[&one, &zero, &a])
    }

    fn number_to_truth(&mut self, from: Type, a: Operand) -> Register {
        let zero = super::writer::immediate(Literal::zero(Type::F32));
        match from {
            Type::F16 | Type::Bf16 => {
                let wide = self.widened(from, a).to_string();
                self.compute(Class::Pred, "setp.neu.f32", &[&wide, &zero])
            }
            Type::F32 => {
                let a = self.operand(a);
                self.compute(Class::Pred, &format!("setp.neu.{}", self.f32_name()), &[&a, &zero])
            }
            Type::F64 => {
                let a = self.operand(a);
                self.compute(Class::Pred, "setp.neu.f64", &[&a, "0d0000000000000000"])
            }
            _ => {
                let a = self.operand(a);
                self.compute(Class::Pred, &format!("setp.ne.{}", name(from)), &[&a, "0"])
            }
        }
    }

    fn between_integers(&mut self, from: Type, to: Type, a: Operand) -> Register {
        let a = self.register(a);
        match (from.bits() == 64, to.bits() == 64) {
            (false, true) => {
                let instruction = if from.is_signed() { "cvt.s64.s32" } else { "cvt.u64.u32" };
                self.compute(Class::B64, instruction, &[&a.to_string()])
            }
            (true, true) => a,
            (true, false) => {
                let low = self.compute(Class::B32, "cvt.u32.u64", &[&a.to_string()]);
                if to.bits() < 32 { self.normalised(to, low) } else { low }
            }
            (false, false) if to.bits() < 32 => self.normalised(to, a),
            (false, false) => a,
        }
    }

    fn integer_to_float(&mut self, from: Type, to: Type, a: Operand) -> Register {
        let source = name(from);
        let a = self.operand(a);
        match to {
            Type::F32 => self.compute(Class::F32, &format!("cvt.rn.f32.{source}"), &[&a]),
            Type::F64 => self.compute(Class::F64, &format!("cvt.rn.f64.{source}"), &[&a]),
            Type::F16 => self.compute(Class::B16, &format!("cvt.rn.f16.{source}"), &[&a]),
            _ => {
                let single = self.single_to_odd(source, &a);
                self.narrow(to, single)
            }
        }
    }

    fn between_floats(&mut self, from: Type, to: Type, a: Operand) -> Register {
        match (from, to) {
            (Type::F16 | Type::Bf16, Type::F16 | Type::Bf16) => {
                let wide = self.widened(from, a);
                self.narrow(to, wide)
            }
            (Type::F16 | Type::Bf16, Type::F32) => {
                let wide = self.widened(from, a);
                self.flushed(wide)
            }
            (Type::F16 | Type::Bf16, _) => {
                let wide = self.widened(from, a).to_string();
                self.compute(Class::F64, "cvt.f64.f32", &[&wide])
            }
            (Type::F32, Type::F64) => {
                let a = self.operand(a);
                self.compute(Class::F64, &format!("cvt{}.f64.f32", self.flush_mark()), &[&a])
            }
            (Type::F32, Type::F32) => {
                let a = self.register(a);
                self.flushed(a)
            }
            (Type::F32, _) => {
                let single = self.register(a);
                let single = self.flushed(single);
                self.narrow(to, single)
            }
            (_, Type::F32) => {
                let a = self.operand(a);
                self.compute(Class::F32, &format!("cvt.rn{}.f32.f64", self.flush_mark()), &[&a])
            }
            (_, Type::F16) => {
                let a = self.operand(a);
                self.compute(Class::B16, "cvt.rn.f16.f64", &[&a])
            }
            _ => {
                let a = self.operand(a);
                let single = self.single_to_odd("f64", &a);
                self.narrow(to, single)
            }
        }
    }

    fn flush_mark(&self) -> &'static str {
        if self.draft.flush { ".ftz" } else { "" }
    }

    /// A single without what the program does not want to see.
    fn flushed(&mut self, a: Register) -> Register {
        match self.draft.flush {
            true => self.compute(Class::F32, "mul.rn.ftz.f32", &[&a.to_string(), "0f3F800000"]),
            false => a,
        }
    }

    /// Cut toward zero, the ends of the type for everything beyond, 0 for NaN.
    fn float_to_integer(&mut self, from: Type, to: Type, a: Operand) -> Register {
        let (source, a) = match from {
            Type::F16 | Type::Bf16 => ("f32", self.widened(from, a).to_string()),
            Type::F32 => ("f32", self.operand(a)),
            _ => ("f64", self.operand(a)),
        };
        let class = Class::of(to);
        let result = self.compute(class, &format!("cvt.rzi.{}.{source}", name(to)), &[&a]).to_string();
        // The instruction answers something else for NaN where a double or 64 bits are involved.
        let nan = self.compute(Class::Pred, &format!("setp.nan.{source}"), &[&a, &a]).to_string();
        let result = self.compute(class, &format!("selp.{}", class.name()), &["0", &result, &nan]);
        if to.bits() >= 32 {
            return result;
        }
        let [least, most] = Self::bounds(to);
        let above = self.compute(Class::B32, &format!("max.{}", name(to)), &[&result.to_string(), &least]);
        self.compute(Class::B32, &format!("min.{}", name(to)), &[&above.to_string(), &most])
    }
}
