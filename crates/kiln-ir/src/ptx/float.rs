//! Floats of 32 and 64 bits. Every instruction names its rounding mode, so that `ptxas` does not fuse a multiplication and an addition.

use super::register::{Class, Register};
use super::writer::Writer;
use crate::operation::{BinaryOp, Operand, UnaryOp};
use crate::scalar_type::Type;

impl Writer<'_> {
    /// The name of a float type in instructions.
    fn float_name(&self, ty: Type) -> String {
        if ty == Type::F64 { "f64".to_owned() } else { self.f32_name() }
    }

    pub(super) fn float_unary(&mut self, op: UnaryOp, ty: Type, a: Operand) -> Register {
        if ty.bits() == 16 {
            return self.half_unary(op, ty, a);
        }
        let name = self.float_name(ty);
        let a = self.operand(a);
        let instruction = match (op, Self::unary_round(op)) {
            (_, Some(round)) => format!("cvt.{round}.{name}.{}", ty.word()),
            (UnaryOp::Neg, _) => format!("neg.{name}"),
            (UnaryOp::Abs, _) => format!("abs.{name}"),
            _ => format!("sqrt.rn.{name}"),
        };
        self.compute(Class::of(ty), &instruction, &[&a])
    }

    pub(super) fn float_binary(&mut self, op: BinaryOp, ty: Type, a: Operand, b: Operand) -> Register {
        if ty.bits() == 16 {
            return self.half_binary(op, ty, a, b);
        }
        let (a, b) = (self.operand(a), self.operand(b));
        let instruction = binary_name(op, &self.float_name(ty));
        self.compute(Class::of(ty), &instruction, &[&a, &b])
    }

    pub(super) fn fma(&mut self, ty: Type, operands: [Operand; 3]) -> Register {
        if ty.bits() == 16 {
            return self.half_fma(ty, operands);
        }
        let [a, b, c] = operands.map(|operand| self.operand(operand));
        let instruction = format!("fma.rn.{}", self.float_name(ty));
        self.compute(Class::of(ty), &instruction, &[&a, &b, &c])
    }
}

/// The instruction of an operation on two floats.
pub(super) fn binary_name(op: BinaryOp, name: &str) -> String {
    match op {
        BinaryOp::Add => format!("add.rn.{name}"),
        BinaryOp::Sub => format!("sub.rn.{name}"),
        BinaryOp::Mul => format!("mul.rn.{name}"),
        BinaryOp::Div => format!("div.rn.{name}"),
        BinaryOp::Min => format!("min.{name}"),
        _ => format!("max.{name}"),
    }
}
