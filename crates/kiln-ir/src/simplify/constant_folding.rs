//! Constant folding.

use crate::builder::KernelBuilder;
use crate::declaration::ValueId;
use crate::evaluate::{self, Mode};
use crate::literal::Literal;
use crate::operation::{BinaryOp, Op, Operand};
use crate::rewrite::Change;
use crate::scalar_type::Type;

/// Replaces operations on literals by their results.
pub(super) struct Fold {
    pub(super) flush: bool,
}

impl Change for Fold {
    fn operation(&mut self, _: &KernelBuilder, _: ValueId, op: &Op) -> Option<Operand> {
        let mode = Mode { flush: self.flush };
        constant(op, mode).map(Operand::Literal).or_else(|| same(op))
    }

    fn decided(&self, condition: Operand) -> Option<bool> {
        match condition {
            Operand::Literal(literal) => Some(!literal.is_zero()),
            Operand::Value(_) => None,
        }
    }

    fn keeps_names(&self) -> bool {
        false
    }
}

/// The result of an operation whose operands are all literals.
fn constant(op: &Op, mode: Mode) -> Option<Literal> {
    let get = |operand: &Operand| match operand {
        Operand::Literal(literal) => Some(literal.bits()),
        Operand::Value(_) => None,
    };
    let (ty, bits) = match op {
        Op::Unary { op, ty, a } => (op.result(*ty), evaluate::unary(*op, *ty, get(a)?, mode)),
        Op::Binary { op, ty, a, b } => (*ty, evaluate::binary(*op, *ty, get(a)?, get(b)?, mode)),
        Op::Compare { op, ty, a, b } => {
            (Type::Bool, u64::from(evaluate::compare(*op, *ty, get(a)?, get(b)?, mode)))
        }
        Op::Fma { ty, a, b, c } => (*ty, evaluate::fma(*ty, [get(a)?, get(b)?, get(c)?], mode)),
        Op::Convert { from, to, a } => (*to, evaluate::convert::convert(*from, *to, get(a)?, mode)),
        Op::Bitcast { to, a, .. } => (*to, get(a)?),
        _ => return None,
    };
    Some(Literal::new(ty, bits))
}

/// The operand that an operation returns unchanged.
fn same(op: &Op) -> Option<Operand> {
    let literal = |operand: &Operand| match operand {
        Operand::Literal(literal) => Some(literal.bits()),
        Operand::Value(_) => None,
    };
    match op {
        Op::Select { condition, a, b, .. } => match literal(condition) {
            Some(0) => Some(*b),
            Some(_) => Some(*a),
            None => (a == b).then_some(*a),
        },
        Op::Convert { from, to, a } if from == to && *from != Type::F32 => Some(*a),
        Op::Binary { op, ty, a, b } if !ty.is_float() => {
            let one_is = |bits: u64| {
                (literal(b) == Some(bits)).then_some(*a).or((literal(a) == Some(bits)).then_some(*b))
            };
            match op {
                BinaryOp::Add | BinaryOp::Or | BinaryOp::Xor => one_is(0),
                BinaryOp::And => one_is(ty.mask()),
                BinaryOp::Mul => one_is(1),
                BinaryOp::Sub | BinaryOp::Shl | BinaryOp::Shr if literal(b) == Some(0) => Some(*a),
                BinaryOp::Div if literal(b) == Some(1) => Some(*a),
                _ => None,
            }
        }
        _ => None,
    }
}
