//! The undefined bits of the registers of a frame.

use super::alternatives::{Alternatives, pattern};
use super::origin::Origin;
use crate::exec::lowered_code::{Pred, PredSource, Reg, Source};
use crate::exec::warp_register::{Column, LANES, each, lanes_where};

/// Undefined bits on their way into a register, and where each lane has them from.
#[derive(Clone, Debug)]
pub(crate) struct Carried {
    pub(crate) bits: Column,
    pub(crate) origins: [Origin; LANES],
    /// What the value would be for other values of the undefined bits, where it was computed.
    pub(crate) alternatives: Option<Box<Alternatives>>,
}

impl Carried {
    /// Nothing undefined.
    pub(crate) const NOTHING: Self =
        Self { bits: [0; LANES], origins: [Origin::NONE; LANES], alternatives: None };

    /// Marks bits of a lane.
    pub(crate) fn mark(&mut self, lane: usize, bits: u64, origin: Origin) {
        if bits == 0 {
            return;
        }
        // Of several origins a shuffle is told: it is a mistake by itself.
        let is_told = self.bits[lane] != 0 && matches!(self.origins[lane], Origin::Lane { .. });
        self.bits[lane] |= bits;
        if !is_told {
            self.origins[lane] = origin;
        }
    }

    /// Takes the alternatives of another value in the lanes of `mask`.
    fn set_alternatives(&mut self, from: &Self, mask: u32) {
        if self.alternatives.is_none() && from.alternatives.is_none() {
            return;
        }
        let known = self.alternatives.get_or_insert_with(|| Box::new(Alternatives::UNKNOWN));
        known.lanes &= !mask;
        let Some(from) = &from.alternatives else { return };
        known.lanes |= from.lanes & mask;
        for (to, from) in known.values.iter_mut().zip(&from.values) {
            each(mask, |lane| to[lane] = from[lane]);
        }
    }

    /// The lanes with undefined bits.
    pub(crate) fn lanes(&self) -> u32 {
        lanes_where(u32::MAX, |lane| self.bits[lane] != 0)
    }
}

/// A predicate that is undefined in some lanes.
#[derive(Clone, Debug)]
struct UndefinedPredicate {
    lanes: u32,
    origins: [Origin; LANES],
}

impl UndefinedPredicate {
    fn nothing() -> Box<Self> {
        Box::new(Self { lanes: 0, origins: [Origin::NONE; LANES] })
    }
}

/// The registers of a frame that hold undefined bits.
#[derive(Debug, Default)]
pub(crate) struct UndefinedRegisters {
    /// How many registers and predicates have any.
    count: u32,
    columns: Vec<Option<Box<Carried>>>,
    predicates: Vec<Option<Box<UndefinedPredicate>>>,
    /// The carry flag.
    carry: Option<Box<UndefinedPredicate>>,
}

impl UndefinedRegisters {
    /// Whether any register has undefined bits.
    #[inline(always)]
    pub(crate) fn any(&self) -> bool {
        self.count != 0
    }

    /// The undefined bits of what a step reads.
    pub(crate) fn column(&self, source: Source) -> Option<&Carried> {
        let column = source.split().err()?;
        self.columns.get(column as usize)?.as_deref()
    }

    /// The lanes in which a source has undefined bits among `bits`.
    pub(crate) fn lanes(&self, source: Source, mask: u32, bits: u64) -> u32 {
        self.column(source).map_or(0, |carried| lanes_where(mask, |lane| carried.bits[lane] & bits != 0))
    }

    /// The lanes in which a predicate is undefined.
    pub(crate) fn predicate(&self, source: PredSource) -> u32 {
        self.predicate_at(source.pred).map_or(0, |found| found.lanes)
    }

    /// Where a lane of a predicate has its value from.
    pub(crate) fn predicate_origin(&self, source: PredSource, lane: usize) -> Origin {
        self.predicate_at(source.pred).map_or(Origin::NONE, |found| found.origins[lane])
    }

    /// Replaces what is known of a register in the lanes of `mask`.
    pub(crate) fn set(&mut self, reg: Reg, carried: &Carried, mask: u32) {
        let marked = lanes_where(mask, |lane| carried.bits[lane] != 0);
        self.define(reg, mask & !marked);
        if marked == 0 || reg.0 == 0 {
            return;
        }
        let at = reg.0 as usize;
        if self.columns.len() <= at {
            self.columns.resize_with(at + 1, || None);
        }
        let Some(slot) = self.columns.get_mut(at) else { return };
        self.count += u32::from(slot.is_none());
        let known = slot.get_or_insert_with(|| Box::new(Carried::NOTHING));
        each(marked, |lane| {
            known.bits[lane] = carried.bits[lane];
            known.origins[lane] = carried.origins[lane];
        });
        known.set_alternatives(carried, marked);
    }

    /// What a source would hold in each lane for other values of its undefined bits; `value` is what it holds.
    pub(crate) fn alternative(&self, source: Source, number: usize, value: &Column) -> Column {
        let Some(known) = self.column(source) else { return *value };
        let register = source.split().err().unwrap_or(0);
        std::array::from_fn(|lane| match (known.bits[lane], &known.alternatives) {
            (0, _) => value[lane],
            (_, Some(others)) if others.lanes >> lane & 1 != 0 => others.values[number][lane],
            (bits, _) => {
                (value[lane] & !bits) | (pattern(number, register, lane, known.origins[lane]) & bits)
            }
        })
    }

    /// A register is defined in the lanes of `mask`.
    pub(crate) fn define(&mut self, reg: Reg, mask: u32) {
        let Some(slot) = self.columns.get_mut(reg.0 as usize) else { return };
        let Some(known) = slot else { return };
        each(mask, |lane| known.bits[lane] = 0);
        if known.lanes() == 0 {
            *slot = None;
            self.count -= 1;
        }
    }

    /// Replaces what is known of a predicate in the lanes of `mask`: it is undefined in those of `lanes`.
    pub(crate) fn set_predicate(
        &mut self,
        pred: Pred,
        lanes: u32,
        origins: impl Fn(usize) -> Origin,
        mask: u32,
    ) {
        self.define_predicate(pred, mask & !lanes);
        let lanes = lanes & mask;
        if lanes == 0 || pred.0 < Pred::FIRST {
            return;
        }
        let at = pred.0 as usize;
        if self.predicates.len() <= at {
            self.predicates.resize_with(at + 1, || None);
        }
        let Some(slot) = self.predicates.get_mut(at) else { return };
        self.count += u32::from(slot.is_none());
        let known = slot.get_or_insert_with(UndefinedPredicate::nothing);
        known.lanes |= lanes;
        each(lanes, |lane| known.origins[lane] = origins(lane));
    }

    /// A predicate is defined in the lanes of `mask`.
    pub(crate) fn define_predicate(&mut self, pred: Pred, mask: u32) {
        let Some(slot) = self.predicates.get_mut(pred.0 as usize) else { return };
        let Some(known) = slot else { return };
        known.lanes &= !mask;
        if known.lanes == 0 {
            *slot = None;
            self.count -= 1;
        }
    }

    /// The lanes in which the carry flag is undefined.
    pub(crate) fn carry(&self) -> u32 {
        self.carry.as_ref().map_or(0, |found| found.lanes)
    }

    /// Where a lane of the carry flag has its value from.
    pub(crate) fn carry_origin(&self, lane: usize) -> Origin {
        self.carry.as_ref().map_or(Origin::NONE, |found| found.origins[lane])
    }

    /// Replaces what is known of the carry flag in the lanes of `mask`: it is undefined in those that `carried` marks.
    pub(crate) fn set_carry(&mut self, carried: &Carried, mask: u32) {
        let lanes = (self.carry() & !mask) | (carried.lanes() & mask);
        self.count += u32::from(self.carry.is_none() && lanes != 0);
        self.count -= u32::from(self.carry.is_some() && lanes == 0);
        if lanes == 0 {
            self.carry = None;
            return;
        }
        let known = self.carry.get_or_insert_with(UndefinedPredicate::nothing);
        known.lanes = lanes;
        each(carried.lanes() & mask, |lane| known.origins[lane] = carried.origins[lane]);
    }

    /// What comes from the same read in a lane counts as defined from here on.
    pub(crate) fn define_all_from(&mut self, origin: Origin, lane: usize) {
        let is_same = |known: &Carried| known.bits[lane] != 0 && known.origins[lane].is_same(origin);
        for at in 0..self.columns.len() {
            if self.columns[at].as_deref().is_some_and(is_same) {
                self.define(Reg(at as u32), 1 << lane);
            }
        }
        let is_same =
            |known: &UndefinedPredicate| known.lanes >> lane & 1 != 0 && known.origins[lane].is_same(origin);
        for at in 0..self.predicates.len() {
            if self.predicates[at].as_deref().is_some_and(is_same) {
                self.define_predicate(Pred(at as u32), 1 << lane);
            }
        }
        if self.carry.as_deref().is_some_and(is_same) {
            self.set_carry(&Carried::NOTHING, 1 << lane);
        }
    }

    /// All registers are defined.
    pub(crate) fn clear(&mut self) {
        self.count = 0;
        self.carry = None;
        self.columns.clear();
        self.predicates.clear();
    }

    fn predicate_at(&self, pred: Pred) -> Option<&UndefinedPredicate> {
        self.predicates.get(pred.0 as usize)?.as_deref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_register_counts_until_its_last_lane_is_defined() {
        let mut registers = UndefinedRegisters::default();
        let mut carried = Carried::NOTHING;
        carried.mark(3, 0xff, Origin::NONE);
        carried.mark(7, 0xff00, Origin::NONE);
        registers.set(Reg(5), &carried, u32::MAX);
        registers.set(Reg(0), &carried, u32::MAX);
        assert!(registers.any());
        assert_eq!(registers.lanes(Source(5), u32::MAX, u64::MAX), 1 << 3 | 1 << 7);
        assert_eq!(registers.lanes(Source(5), u32::MAX, 0xff), 1 << 3);
        registers.define(Reg(5), 1 << 3);
        assert_eq!(registers.lanes(Source(5), u32::MAX, u64::MAX), 1 << 7);
        registers.set(Reg(5), &Carried::NOTHING, 1 << 7);
        assert!(!registers.any());
    }

    #[test]
    fn predicates_are_undefined_lane_by_lane() {
        let mut registers = UndefinedRegisters::default();
        let (pred, source) = (Pred(4), PredSource { pred: Pred(4), negated: true });
        registers.set_predicate(pred, 0b110, |_| Origin::NONE, 0b111);
        registers.set_predicate(Pred::SINK, 0b110, |_| Origin::NONE, 0b111);
        assert_eq!(registers.predicate(source), 0b110);
        registers.set_predicate(pred, 0b001, |_| Origin::NONE, 0b011);
        assert_eq!(registers.predicate(source), 0b101);
        registers.define_predicate(pred, 0b111);
        assert!(!registers.any());
    }

    #[test]
    fn what_comes_from_one_read_is_told_once() {
        let origin = |register| Origin::Register { function: 0, register };
        let mut registers = UndefinedRegisters::default();
        let mut carried = Carried::NOTHING;
        carried.mark(3, 1, origin(1));
        carried.mark(4, 1, origin(1));
        registers.set(Reg(5), &carried, u32::MAX);
        registers.set_carry(&carried, u32::MAX);
        registers.set_predicate(Pred(4), 1 << 3, |_| origin(1), u32::MAX);
        registers.set_predicate(Pred(5), 1 << 3, |_| origin(2), u32::MAX);
        registers.define_all_from(origin(1), 3);
        assert_eq!((registers.lanes(Source(5), u32::MAX, 1), registers.carry()), (1 << 4, 1 << 4));
        let predicate = |pred| registers.predicate(PredSource { pred: Pred(pred), negated: false });
        assert_eq!((predicate(4), predicate(5)), (0, 1 << 3));
        registers.define_all_from(origin(1), 4);
        registers.define_all_from(origin(2), 3);
        assert!(!registers.any());
    }
}
