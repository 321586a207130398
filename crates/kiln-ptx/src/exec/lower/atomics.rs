//! `atom` and `red`: how the value in memory is updated.

use super::super::alu::Mode;
use super::super::alu::float_format::{BF16, F16, F32, F64, Format};
use super::super::alu::half::{HalfOp, compute};
use super::super::alu::single::{canonical, float};
use super::super::lowered_code::{Atomic, Op, Update};
use super::super::memory::generic_address::Place;
use super::function::Lowering;
use super::memory::strength;
use crate::{Form, Opcode, Operation, PtxOperand, ScalarType};

impl Lowering<'_> {
    pub(super) fn lower_atomic(&mut self, form: &Form, operands: &[PtxOperand]) -> Option<()> {
        let ty = form.ty()?;
        let operation = form.operation()?;
        if form.vector() != 1 || ty.size_bytes() > 8 {
            return None;
        }
        let (to, rest) = match form.opcode() {
            Opcode::Atom => (Some(self.destination(operands.first()?)?), operands.get(1..)?),
            _ => (None, operands),
        };
        let (place, address) = self.address(rest.first()?, Place::of(form.space())?)?;
        let b = self.source(rest.get(1)?, ty)?;
        let c = match operation {
            Operation::Cas => self.source(rest.get(2)?, ty)?,
            _ => self.constant(0),
        };
        let (update, update_global) = update(operation, ty)?;
        let bytes = ty.size_bytes();
        let strength = strength(form, true);
        let compares = operation == Operation::Cas;
        let reads = operation != Operation::Exch;
        let atomic =
            Atomic { place, bytes, update, update_global, address, b, c, to, strength, compares, reads };
        self.emit(Op::Atomic(Box::new(atomic)));
        Some(())
    }
}

/// What an operation makes of the old value, in shared and in global memory.
fn update(operation: Operation, ty: ScalarType) -> Option<(Update, Update)> {
    use Operation::*;
    use ScalarType as Type;
    let same = |update: Update| Some((update, update));
    match (operation, ty) {
        (Add, Type::U32 | Type::S32 | Type::U64 | Type::S64) => same(|old, b, _| old.wrapping_add(b)),
        // Global memory flushes subnormal singles, shared memory keeps them.
        (Add, Type::F32) => Some((
            |old, b, _| canonical(float(old) + float(b)),
            |old, b, _| F32.flush(canonical(float(F32.flush(old)) + float(F32.flush(b)))),
        )),
        // Both hand a NaN on: shared memory prefers the old one and makes it quiet, global memory keeps the new one.
        (Add, Type::F64) => Some((|old, b, _| sum_f64(old, b, 1 << 51), |old, b, _| sum_f64(b, old, 0))),
        (Add, Type::F16) => same(|old, b, _| half_sum(F16, old, b)),
        (Add, Type::Bf16) => same(|old, b, _| half_sum(BF16, old, b)),
        (Add, Type::F16x2) => same(|old, b, _| pair_sum(F16, old, b)),
        (Add, Type::Bf16x2) => same(|old, b, _| pair_sum(BF16, old, b)),
        (Exch, _) => same(|_, b, _| b),
        (Cas, _) => same(|old, b, c| if old == b { c } else { old }),
        (And, _) => same(|old, b, _| old & b),
        (Or, _) => same(|old, b, _| old | b),
        (Xor, _) => same(|old, b, _| old ^ b),
        (Inc, Type::U32) => same(|old, b, _| if old >= b { 0 } else { old + 1 }),
        (Dec, Type::U32) => same(|old, b, _| if old == 0 || old > b { b } else { old - 1 }),
        (Min, Type::U32 | Type::U64) => same(|old, b, _| old.min(b)),
        (Max, Type::U32 | Type::U64) => same(|old, b, _| old.max(b)),
        (Min, Type::S32) => same(|old, b, _| u64::from((old as i32).min(b as i32) as u32)),
        (Max, Type::S32) => same(|old, b, _| u64::from((old as i32).max(b as i32) as u32)),
        (Min, Type::S64) => same(|old, b, _| (old as i64).min(b as i64) as u64),
        (Max, Type::S64) => same(|old, b, _| (old as i64).max(b as i64) as u64),
        _ => None,
    }
}

/// The sum of two doubles, or the first that is NaN with the bits of `quiet` set.
fn sum_f64(a: u64, b: u64, quiet: u64) -> u64 {
    match [a, b].into_iter().find(|bits| F64.is_nan(*bits)) {
        Some(nan) => nan | quiet,
        None => {
            Some(f64::from_bits(a) + f64::from_bits(b)).filter(|x| !x.is_nan()).map_or(F64.nan, f64::to_bits)
        }
    }
}

fn half_sum(format: Format, a: u64, b: u64) -> u64 {
    compute(HalfOp::Add, format, [a, b, 0], Mode::default())
}

fn pair_sum(format: Format, a: u64, b: u64) -> u64 {
    half_sum(format, a, b) | half_sum(format, a >> 16, b >> 16) << 16
}
