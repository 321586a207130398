//! Evaluation of operations on bits.
//!
//! Values are `u64`: the bits of their type, zero above. The interpreter and constant folding both use these functions,
//! so they agree.

pub(crate) mod convert;
pub(crate) mod float;
pub(crate) mod half;
pub(crate) mod integer;
pub(crate) mod tile;

use crate::operation::{BinaryOp, CompareOp, UnaryOp};
use crate::scalar_type::Type;

/// What `f32` operations do with subnormal numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mode {
    /// Subnormals become zero of the same sign.
    pub(crate) flush: bool,
}

impl Mode {
    /// An operand or result of an `f32` operation.
    pub(crate) fn apply(self, ty: Type, bits: u64) -> u64 {
        let subnormal = ty == Type::F32 && bits & 0x7f80_0000 == 0;
        if self.flush && subnormal { bits & 0x8000_0000 } else { bits }
    }
}

/// An operation on one operand.
pub(crate) fn unary(op: UnaryOp, ty: Type, a: u64, mode: Mode) -> u64 {
    match ty {
        Type::Bool => a ^ 1,
        _ if ty.is_float() => mode.apply(ty, float::unary(op, ty, mode.apply(ty, a))),
        _ => integer::unary(op, ty, a),
    }
}

/// An operation on two operands.
pub(crate) fn binary(op: BinaryOp, ty: Type, a: u64, b: u64, mode: Mode) -> u64 {
    match ty {
        Type::Bool => match op {
            BinaryOp::And => a & b,
            BinaryOp::Or => a | b,
            _ => a ^ b,
        },
        _ if ty.is_float() => mode.apply(ty, float::binary(op, ty, mode.apply(ty, a), mode.apply(ty, b))),
        _ => integer::binary(op, ty, a, b),
    }
}

/// `a * b + c`, rounded once.
pub(crate) fn fma(ty: Type, [a, b, c]: [u64; 3], mode: Mode) -> u64 {
    mode.apply(ty, float::fma(ty, [a, b, c].map(|bits| mode.apply(ty, bits))))
}

/// Whether a comparison holds.
pub(crate) fn compare(op: CompareOp, ty: Type, a: u64, b: u64, mode: Mode) -> bool {
    let order = if ty.is_float() {
        float::value(ty, mode.apply(ty, a)).partial_cmp(&float::value(ty, mode.apply(ty, b)))
    } else {
        Some(integer::value(ty, a).cmp(&integer::value(ty, b)))
    };
    match op {
        CompareOp::Eq => order.is_some_and(|order| order.is_eq()),
        CompareOp::Ne => order.is_none_or(|order| order.is_ne()),
        CompareOp::Lt => order.is_some_and(|order| order.is_lt()),
        CompareOp::Le => order.is_some_and(|order| order.is_le()),
        CompareOp::Gt => order.is_some_and(|order| order.is_gt()),
        CompareOp::Ge => order.is_some_and(|order| order.is_ge()),
    }
}
