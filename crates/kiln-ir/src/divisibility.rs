//! The power of two that divides a value.
//!
//! Enough to see that `i * 4` is the first of four aligned elements. Wrapping around subtracts multiples of a larger
//! power, so it does not matter.

use crate::declaration::ValueId;
use crate::operation::{BinaryOp, Op, Operand};
use crate::program::Draft;
use crate::statement::{Block, StatementKind};

/// For each value, how many of its lowest bits are always zero.
#[derive(Clone, Debug)]
pub(crate) struct Divisibility {
    zeros: Vec<u32>,
}

impl Divisibility {
    pub(crate) fn new(draft: &Draft) -> Self {
        let mut multiples = Self { zeros: vec![0; draft.values.len()] };
        multiples.block(&draft.body);
        multiples
    }

    /// The largest power of two that a value is known to be a multiple of, up to 2^31.
    pub(crate) fn of(&self, value: ValueId) -> u64 {
        1 << self.zeros.get(value.index()).copied().unwrap_or(0).min(31)
    }

    fn operand(&self, operand: Operand) -> u32 {
        match operand {
            Operand::Value(id) => self.zeros.get(id.index()).copied().unwrap_or(0),
            Operand::Literal(literal) => literal.bits().trailing_zeros(),
        }
    }

    fn block(&mut self, block: &Block) {
        for statement in block {
            match &statement.kind {
                StatementKind::Let { value, op } => self.zeros[value.index()] = self.result(op),
                StatementKind::If { then, otherwise, .. } => {
                    self.block(then);
                    self.block(otherwise);
                }
                StatementKind::For { value, start, step, body, .. } => {
                    self.zeros[value.index()] = self.operand(*start).min(self.operand(*step));
                    self.block(body);
                }
                StatementKind::While { condition, body, .. } => {
                    self.block(condition);
                    self.block(body);
                }
                _ => {}
            }
        }
    }

    fn result(&self, op: &Op) -> u32 {
        let get = |operand: &Operand| self.operand(*operand);
        match op {
            Op::Binary { op, ty, a, b } if ty.is_integer() => match (op, b) {
                (BinaryOp::Add | BinaryOp::Sub | BinaryOp::Or | BinaryOp::Xor, _) => get(a).min(get(b)),
                (BinaryOp::Mul, _) => get(a) + get(b),
                (BinaryOp::And, _) => get(a).max(get(b)),
                (BinaryOp::Shl, Operand::Literal(by)) => get(a) + (by.bits() as u32).min(64),
                _ => 0,
            },
            Op::Select { ty, a, b, .. } if ty.is_integer() => get(a).min(get(b)),
            Op::Convert { from, to, a } if from.is_integer() && to.is_integer() => get(a),
            _ => 0,
        }
    }
}
