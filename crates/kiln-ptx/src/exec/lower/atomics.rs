//! `atom` and `red`: how the value in memory is updated.

use super::super::alu::Mode;
use super::super::alu::float_format::{BF16, F16, F32, F64, Format};
use super::super::alu::half::{HalfOp, compute};
use super::super::alu::single::{canonical, float};
use super::super::lowered_code::{Address, Atomic, Op, Source, Update};
use super::super::memory::generic_address::Place;
use super::function::Lowering;
use super::memory::{COMPLETES, strength};
use crate::{Flag, Form, Opcode, Operation, PtxOperand, ScalarType};

impl Lowering<'_> {
    pub(super) fn lower_atomic(&mut self, form: &Form, operands: &[PtxOperand]) -> Option<()> {
        let ty = form.ty()?;
        let operation = form.operation()?;
        if form.vector() != 1 {
            return self.lower_vector_atomic(form, operands, (operation, ty));
        }
        if ty.size_bytes() > 8 {
            return None;
        }
        let (to, rest) = match form.opcode() {
            Opcode::Atom => (Some(self.destination(operands.first()?)?), operands.get(1..)?),
            _ => (None, operands),
        };
        let (place, address) = self.address(rest.first()?, Place::of(form.space())?)?;
        if form.has(Flag::Async) && !is_async_update(form, place, operation) {
            return None;
        }
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
        let align = bytes;
        let atomic = Atomic {
            place,
            bytes,
            align,
            update,
            update_global,
            address,
            b,
            c,
            to,
            strength,
            compares,
            reads,
        };
        self.emit(Op::Atomic(Box::new(atomic)));
        if form.has(Flag::Async) { self.complete_bytes(rest.get(2)?, bytes) } else { Some(()) }
    }

    /// Updates of vectors in global memory: each element is updated apart, and the vector is aligned as a whole.
    fn lower_vector_atomic(
        &mut self,
        form: &Form,
        operands: &[PtxOperand],
        (operation, ty): (Operation, ScalarType),
    ) -> Option<()> {
        let count = usize::from(form.vector());
        let noftz = form.has(Flag::Noftz);
        if !is_vector_form(operation, ty, count, noftz) {
            return None;
        }
        let (to, rest) = match form.opcode() {
            Opcode::Atom => (Some(operands.first()?), operands.get(1..)?),
            _ => (None, operands),
        };
        let place =
            Place::of(form.space()).filter(|place| matches!(place, Place::Global | Place::Generic))?;
        let (place, address) = self.address(rest.first()?, place)?;
        let to = match to {
            Some(to) => {
                let parts = self.parts(to);
                Some(parts.iter().map(|part| self.destination(part)).collect::<Option<Vec<_>>>()?)
            }
            None => None,
        };
        let parts = self.parts(rest.get(1)?);
        let mut from = parts.iter().map(|part| self.source(part, ty)).collect::<Option<Vec<_>>>()?;
        if from.len() != count || to.as_ref().is_some_and(|to| to.len() != count) {
            return None;
        }
        // An element may be written before a later one is read: those are read first.
        for (at, source) in from.iter_mut().enumerate() {
            let mut before = to.iter().flat_map(|to| to.iter().take(at));
            if before.any(|to| Source::from(*to) == *source) {
                let copy = self.scratch();
                self.emit(Op::Copy { to: copy, from: *source });
                *source = copy.into();
            }
        }
        let (update, update_global) = update_of_element(operation, ty)?;
        let (bytes, zero) = (ty.size_bytes(), self.constant(0));
        for (at, b) in (0..).zip(from) {
            let offset = address.offset.wrapping_add(i64::from(at * bytes));
            self.emit(Op::Atomic(Box::new(Atomic {
                place,
                bytes,
                align: if at == 0 { bytes * count as u32 } else { bytes },
                update,
                update_global,
                address: Address { offset, ..address },
                b,
                c: zero,
                to: to.as_ref().and_then(|to| to.get(at as usize).copied()),
                strength: strength(form, true),
                compares: false,
                reads: true,
            })));
        }
        Some(())
    }
}

/// Whether there is such an update that completes bytes of an `mbarrier` object.
fn is_async_update(form: &Form, place: Place, operation: Operation) -> bool {
    matches!(place, Place::Cluster | Place::Generic)
        && form.opcode() == Opcode::Red
        && form.has_word(COMPLETES)
        && !matches!(operation, Operation::Exch | Operation::Cas)
}

/// Whether there is such an update of a vector.
fn is_vector_form(operation: Operation, ty: ScalarType, count: usize, noftz: bool) -> bool {
    use Operation::{Add, Max, Min};
    match ty {
        ScalarType::F32 => operation == Add && matches!(count, 2 | 4) && !noftz,
        ScalarType::F16 | ScalarType::Bf16 => {
            matches!(operation, Add | Min | Max) && matches!(count, 2 | 4 | 8) && noftz
        }
        ScalarType::F16x2 | ScalarType::Bf16x2 => {
            matches!(operation, Add | Min | Max) && matches!(count, 2 | 4) && noftz
        }
        _ => false,
    }
}

/// What a reduction by a bulk copy makes of an element. Subnormal numbers of `f32` are added as they are, unlike by atomics on global memory.
pub(in crate::exec) fn bulk_update(operation: Operation, ty: ScalarType) -> Option<Update> {
    let (in_shared, in_global) = update_of_element(operation, ty)?;
    Some(if ty == ScalarType::F32 { in_shared } else { in_global })
}

/// What an operation makes of an element of a vector: those of one value, and the smaller or greater of halves.
fn update_of_element(operation: Operation, ty: ScalarType) -> Option<(Update, Update)> {
    use Operation::{Max, Min};
    use ScalarType as Type;
    let same = |update: Update| Some((update, update));
    match (operation, ty) {
        (Min, Type::F16) => same(|old, b, _| half_extreme(HalfOp::Minimum, F16, old, b)),
        (Max, Type::F16) => same(|old, b, _| half_extreme(HalfOp::Maximum, F16, old, b)),
        (Min, Type::Bf16) => same(|old, b, _| half_extreme(HalfOp::Minimum, BF16, old, b)),
        (Max, Type::Bf16) => same(|old, b, _| half_extreme(HalfOp::Maximum, BF16, old, b)),
        (Min, Type::F16x2) => same(|old, b, _| pair_extreme(HalfOp::Minimum, F16, old, b)),
        (Max, Type::F16x2) => same(|old, b, _| pair_extreme(HalfOp::Maximum, F16, old, b)),
        (Min, Type::Bf16x2) => same(|old, b, _| pair_extreme(HalfOp::Minimum, BF16, old, b)),
        (Max, Type::Bf16x2) => same(|old, b, _| pair_extreme(HalfOp::Maximum, BF16, old, b)),
        _ => update(operation, ty),
    }
}

fn half_extreme(op: HalfOp, format: Format, a: u64, b: u64) -> u64 {
    compute(op, format, [a, b, 0], Mode::default())
}

fn pair_extreme(op: HalfOp, format: Format, a: u64, b: u64) -> u64 {
    half_extreme(op, format, a, b) | half_extreme(op, format, a >> 16, b >> 16) << 16
}

/// What an operation makes of the old value, in shared and in global memory.
pub(super) fn update(operation: Operation, ty: ScalarType) -> Option<(Update, Update)> {
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
