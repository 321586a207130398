//! Emits atomics and fences.

use super::register::{Class, Register};
use super::writer::{Writer, ins};
use crate::literal::Literal;
use crate::operation::{AtomicOp, MemoryOrder, MemoryScope, Op, Operand};
use crate::scalar_type::Type;

/// The name of a scope.
fn scope_name(scope: MemoryScope) -> &'static str {
    match scope {
        MemoryScope::Block => "cta",
        MemoryScope::Device => "gpu",
        MemoryScope::System => "sys",
    }
}

impl Writer<'_> {
    pub(super) fn fence(&mut self, scope: MemoryScope) {
        ins!(self, "fence.acq_rel.{}", scope_name(scope));
    }

    pub(super) fn atomic(&mut self, op: &Op) -> Register {
        let Op::Atomic { op, memory, index, value, expected, order, scope } = op else {
            return self.fresh(Class::B32);
        };
        let spot = self.spot(*memory, *index);
        if *order == MemoryOrder::SeqCst {
            ins!(self, "fence.sc.{}", scope_name(*scope));
        }
        let (ty, name) = type_name(*op, spot.ty);
        let value = self.as_bits(ty, *value);
        let expected = expected.map(|expected| self.as_bits(ty, expected));
        let order = match order {
            MemoryOrder::Relaxed => "relaxed",
            MemoryOrder::Acquire => "acquire",
            MemoryOrder::Release => "release",
            MemoryOrder::AcqRel | MemoryOrder::SeqCst => "acq_rel",
        };
        let word = match op {
            AtomicOp::Add => "add",
            AtomicOp::Min => "min",
            AtomicOp::Max => "max",
            AtomicOp::And => "and",
            AtomicOp::Or => "or",
            AtomicOp::Xor => "xor",
            AtomicOp::Exchange => "exch",
            AtomicOp::CompareExchange => "cas",
        };
        let class = Class::of(ty);
        let old = self.fresh(class);
        if !spot.guard.is_empty() {
            ins!(self, "mov.{} {old}, {}", class.name(), super::writer::immediate(Literal::zero(ty)));
        }
        let operands: Vec<String> = expected.into_iter().chain([value]).collect();
        ins!(
            self,
            "{}atom.{order}.{}.{}.{word}.{name} {old}, {}, {}",
            spot.guard,
            scope_name(*scope),
            spot.space,
            spot.address,
            operands.join(", ")
        );
        match Class::of(spot.ty) == class {
            true => old,
            false => self.compute(Class::of(spot.ty), &format!("mov.b{}", ty.bits()), &[&old.to_string()]),
        }
    }

    /// An operand of an atomic that works on registers of a type, which may be the bits of a float.
    fn as_bits(&mut self, ty: Type, operand: Operand) -> String {
        if Class::of(self.ty(operand)) == Class::of(ty) {
            return self.operand(operand);
        }
        let register = self.register(operand).to_string();
        self.compute(Class::of(ty), &format!("mov.b{}", ty.bits()), &[&register]).to_string()
    }
}

/// The type an atomic works on, and its name in the instruction.
fn type_name(op: AtomicOp, ty: Type) -> (Type, &'static str) {
    let wide = ty.bits() == 64;
    match op {
        AtomicOp::Add if ty.is_float() => (ty, ty.word()),
        // A sum wraps the same with a sign and without.
        AtomicOp::Add => (ty, if wide { "u64" } else { "u32" }),
        AtomicOp::Min | AtomicOp::Max => (ty, super::integer::name(ty)),
        _ => (ty.unsigned(), if wide { "b64" } else { "b32" }),
    }
}
