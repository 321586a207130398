//! The undefined bits of the registers of a frame.

use super::alternatives::{ALTERNATIVES, Alternatives, pattern, pattern_place};
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

    /// The same bits from the same reads.
    pub(crate) fn without_alternatives(&self) -> Self {
        Self { bits: self.bits, origins: self.origins, alternatives: None }
    }

    /// Takes the alternatives of another value in the lanes of `mask`; answers a room that is not needed any more.
    fn set_alternatives(&mut self, from: Option<Box<Alternatives>>, mask: u32) -> Option<Box<Alternatives>> {
        match (&mut self.alternatives, from) {
            (None, None) => None,
            (Some(known), None) => {
                known.lanes &= !mask;
                None
            }
            (Some(known), Some(from)) if known.lanes & !mask != 0 => {
                known.lanes = known.lanes & !mask | from.lanes & mask;
                for (to, from) in known.values.iter_mut().zip(&from.values) {
                    each(mask, |lane| to[lane] = from[lane]);
                }
                Some(from)
            }
            (known, Some(mut from)) => {
                from.lanes &= mask;
                known.replace(from)
            }
        }
    }

    /// The lanes with undefined bits.
    pub(crate) fn lanes(&self) -> u32 {
        lanes_where(u32::MAX, |lane| self.bits[lane] != 0)
    }
}

/// What a source would hold in some lanes for other values of its undefined bits.
pub(crate) struct OtherValues<'f> {
    value: &'f Column,
    known: Option<&'f Carried>,
    register: u32,
    lanes: u32,
    /// Whether all of the lanes have undefined bits, and values that were computed before.
    is_whole: bool,
    /// What bits are mixed from, in lanes whose values were not computed before.
    places: Column,
}

impl OtherValues<'_> {
    /// The values with a number, in `room` if they are not held anywhere. Other lanes hold anything.
    pub(crate) fn numbered<'a>(&'a self, number: usize, room: &'a mut Column) -> &'a Column {
        let Some(known) = self.known else { return self.value };
        let others = known.alternatives.as_ref();
        if let Some(others) = others.filter(|_| self.is_whole && number < ALTERNATIVES) {
            return &others.values[number];
        }
        each(self.lanes, |lane| {
            room[lane] = match (known.bits[lane], others) {
                (0, _) => self.value[lane],
                (_, Some(others)) if others.lanes >> lane & 1 != 0 => others.values[number][lane],
                (bits, _) => {
                    let other = pattern(number, self.register, lane, self.places[lane]);
                    (self.value[lane] & !bits) | (other & bits)
                }
            };
        });
        room
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
    /// Room of what is defined since.
    #[allow(clippy::vec_box, reason = "the boxes themselves are used again")]
    spare_columns: Vec<Box<Carried>>,
    #[allow(clippy::vec_box, reason = "the boxes themselves are used again")]
    spare_alternatives: Vec<Box<Alternatives>>,
}

/// How much room is kept of each kind.
const SPARE: usize = 32;

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
        self.put(reg, &mut carried.clone(), mask);
    }

    /// The same; the alternatives are taken over.
    pub(crate) fn put(&mut self, reg: Reg, carried: &mut Carried, mask: u32) {
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
        let room = &mut self.spare_columns;
        let known = slot.get_or_insert_with(|| room.pop().unwrap_or_else(|| Box::new(Carried::NOTHING)));
        each(marked, |lane| {
            known.bits[lane] = carried.bits[lane];
            known.origins[lane] = carried.origins[lane];
        });
        let old = known.set_alternatives(carried.alternatives.take(), marked);
        if let Some(old) = old.filter(|_| self.spare_alternatives.len() < SPARE) {
            self.spare_alternatives.push(old);
        }
    }

    /// What a source would hold in some lanes for other values of its undefined bits; `value` is what it holds.
    pub(crate) fn others<'f>(&'f self, source: Source, value: &'f Column, lanes: u32) -> OtherValues<'f> {
        let known = self.column(source);
        let register = source.split().err().unwrap_or(0);
        let (mut places, mut is_whole) = ([0; LANES], true);
        if let Some(known) = known {
            let computed = known.alternatives.as_ref().map_or(0, |others| others.lanes);
            is_whole = lanes & !computed == 0 && lanes_where(lanes, |lane| known.bits[lane] == 0) == 0;
            each(lanes & !computed, |lane| places[lane] = pattern_place(known.origins[lane]));
        }
        OtherValues { value, known, register, lanes, is_whole, places }
    }

    /// A register is defined in the lanes of `mask`.
    pub(crate) fn define(&mut self, reg: Reg, mask: u32) {
        let Some(slot) = self.columns.get_mut(reg.0 as usize) else { return };
        let Some(known) = slot else { return };
        each(mask, |lane| known.bits[lane] = 0);
        if known.lanes() == 0 {
            let room = slot.take();
            self.count -= 1;
            self.keep(room);
        }
    }

    /// Keeps the room of a register in which no bit is undefined.
    fn keep(&mut self, room: Option<Box<Carried>>) {
        let Some(mut room) = room.filter(|_| self.spare_columns.len() < SPARE) else { return };
        let alternatives = room.alternatives.take();
        self.spare_columns.push(room);
        if let Some(alternatives) = alternatives.filter(|_| self.spare_alternatives.len() < SPARE) {
            self.spare_alternatives.push(alternatives);
        }
    }

    /// Room for values of some lanes; other lanes hold anything.
    pub(crate) fn room(&mut self, lanes: u32) -> Box<Alternatives> {
        let mut room = self.spare_alternatives.pop().unwrap_or_else(|| Box::new(Alternatives::UNKNOWN));
        room.lanes = lanes;
        room
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
