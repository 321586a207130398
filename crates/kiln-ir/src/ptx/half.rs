//! Emits arithmetic on floats of 16 bits.
//!
//! An `f32` has more than twice the digits of a half, so a sum, product, quotient or root computed in it and rounded
//! again is what rounding once would give. Only a fused product and sum needs more.

use super::float::binary_name;
use super::register::{Class, Register};
use super::target::Feature;
use super::writer::{Writer, ins};
use crate::operation::{BinaryOp, Operand, UnaryOp};
use crate::scalar_type::Type;

impl Writer<'_> {
    /// A half as a single.
    pub(super) fn widened(&mut self, ty: Type, a: Operand) -> Register {
        let a = self.register(a).to_string();
        self.widen(ty, &a)
    }

    pub(super) fn widen(&mut self, ty: Type, a: &str) -> Register {
        if ty == Type::F16 {
            return self.compute(Class::F32, "cvt.f32.f16", &[a]);
        }
        let bits = self.compute(Class::B32, "cvt.u32.u16", &[a]).to_string();
        let upper = self.compute(Class::B32, "shl.b32", &[&bits, "16"]).to_string();
        self.compute(Class::F32, "mov.b32", &[&upper])
    }

    /// The half nearest to a single.
    pub(super) fn narrow(&mut self, ty: Type, a: Register) -> Register {
        let a = a.to_string();
        if ty == Type::F16 {
            return self.compute(Class::B16, "cvt.rn.f16.f32", &[&a]);
        }
        if self.uses(Feature::Bf16Convert) {
            return self.compute(Class::B16, "cvt.rn.bf16.f32", &[&a]);
        }
        // Half a unit less one, and one more if the last digit that stays is odd, carry where they must.
        let bits = self.compute(Class::B32, "mov.b32", &[&a]).to_string();
        let last = self.compute(Class::B32, "shr.u32", &[&bits, "16"]).to_string();
        let odd = self.compute(Class::B32, "and.b32", &[&last, "1"]).to_string();
        let sum = self.compute(Class::B32, "add.u32", &[&bits, "32767"]).to_string();
        let sum = self.compute(Class::B32, "add.u32", &[&sum, &odd]).to_string();
        let upper = self.compute(Class::B32, "shr.u32", &[&sum, "16"]).to_string();
        let nan = self.compute(Class::Pred, "setp.nan.f32", &[&a, &a]).to_string();
        let upper = self.compute(Class::B32, "selp.b32", &["32767", &upper, &nan]).to_string();
        self.compute(Class::B16, "cvt.u16.u32", &[&upper])
    }

    pub(super) fn half_unary(&mut self, op: UnaryOp, ty: Type, a: Operand) -> Register {
        match op {
            UnaryOp::Neg | UnaryOp::Abs => {
                let a = self.register(a).to_string();
                match op {
                    UnaryOp::Neg => self.compute(Class::B16, "xor.b16", &[&a, "-32768"]),
                    _ => self.compute(Class::B16, "and.b16", &[&a, "32767"]),
                }
            }
            _ => {
                let wide = self.widened(ty, a).to_string();
                let result = match Self::unary_round(op) {
                    Some(round) => self.compute(Class::F32, &format!("cvt.{round}.f32.f32"), &[&wide]),
                    None => self.compute(Class::F32, "sqrt.rn.f32", &[&wide]),
                };
                self.narrow(ty, result)
            }
        }
    }

    pub(super) fn half_binary(&mut self, op: BinaryOp, ty: Type, a: Operand, b: Operand) -> Register {
        let native = match (ty, op) {
            (Type::F16, BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul) => true,
            (Type::F16, BinaryOp::Min | BinaryOp::Max) => self.uses(Feature::HalfExtremes),
            _ => false,
        };
        if native {
            let (a, b) = (self.operand(a), self.operand(b));
            return self.compute(Class::B16, &binary_name(op, "f16"), &[&a, &b]);
        }
        let (a, b) = (self.widened(ty, a).to_string(), self.widened(ty, b).to_string());
        let result = self.compute(Class::F32, &binary_name(op, "f32"), &[&a, &b]);
        self.narrow(ty, result)
    }

    pub(super) fn half_fma(&mut self, ty: Type, operands: [Operand; 3]) -> Register {
        let native = ty == Type::F16 || self.uses(Feature::Bf16Fma);
        let [a, b, c] = operands.map(|operand| self.register(operand).to_string());
        if native {
            return self.compute(Class::B16, &format!("fma.rn.{ty}"), &[&a, &b, &c]);
        }
        // The sum is rounded down and up in double precision. Of the two, the one with an odd last digit keeps apart
        // what the next rounding must keep apart; the same again into single precision.
        let [a, b, c] = [a, b, c].map(|half| {
            let single = self.widen(ty, &half).to_string();
            self.compute(Class::F64, "cvt.f64.f32", &[&single]).to_string()
        });
        let down = self.compute(Class::F64, "fma.rm.f64", &[&a, &b, &c]);
        let up = self.compute(Class::F64, "fma.rp.f64", &[&a, &b, &c]);
        let nearest = self.compute(Class::F64, "fma.rn.f64", &[&a, &b, &c]).to_string();
        let odd = self.odd_one(down, up).to_string();
        // An exact result is kept, also the sign of a zero, which depends on the rounding.
        let exact =
            self.compute(Class::Pred, "setp.eq.f64", &[&down.to_string(), &up.to_string()]).to_string();
        let sum = self.compute(Class::F64, "selp.f64", &[&nearest, &odd, &exact]).to_string();
        let single = self.single_to_odd("f64", &sum);
        self.narrow(ty, single)
    }

    /// A number as a single that is odd in the last place where it is not exact.
    pub(super) fn single_to_odd(&mut self, from: &str, a: &str) -> Register {
        let down = self.compute(Class::F32, &format!("cvt.rm.f32.{from}"), &[a]);
        let up = self.compute(Class::F32, &format!("cvt.rp.f32.{from}"), &[a]);
        self.odd_one(down, up)
    }

    /// Of two neighbours, or twice the same number, the one whose last digit is odd.
    fn odd_one(&mut self, down: Register, up: Register) -> Register {
        let wide = down.class == Class::F64;
        let (class, bits) = if wide { (Class::B64, "b64") } else { (Class::B32, "b32") };
        let digits = self.compute(class, &format!("mov.{bits}"), &[&down.to_string()]).to_string();
        let last = self.compute(class, &format!("and.{bits}"), &[&digits, "1"]).to_string();
        let odd = self.fresh(Class::Pred);
        ins!(self, "setp.eq.u{} {odd}, {last}, 1", if wide { 64 } else { 32 });
        self.compute(
            down.class,
            &format!("selp.{}", down.class.name()),
            &[&down.to_string(), &up.to_string(), &odd.to_string()],
        )
    }
}
