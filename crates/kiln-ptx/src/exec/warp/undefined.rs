//! Steps of a frame in which a register holds undefined bits.

use super::lane_group::LaneGroup;
use super::{Done, Flow, Warp};
use crate::exec::alu::{Alu, Input, Mode};
use crate::exec::block::Cta;
use crate::exec::check::ValueRule;
use crate::exec::code::{Compare, Op, OperandUse, PredSource, Reg, Source, Step};
use crate::exec::column::{Column, LANES, each, lanes_where};
use crate::exec::undefined::{Carried, DataFlow, Origin, undefined_bitwise};

/// Lanes in which results of a comparison are undefined.
struct UndefinedTruth {
    holds: u32,
    opposite: u32,
    origins: [Origin; LANES],
}

impl Warp {
    /// Runs a step while some register of its frame has undefined bits: they go where the value goes, or their use is reported.
    #[inline(never)]
    pub(super) fn execute_undefined(
        &mut self,
        cta: &mut Cta<'_>,
        at: usize,
        step: &Step,
        lanes: u32,
    ) -> Done<Flow> {
        let frame = self.lane_groups[at].frame;
        let (to, carried) = match &step.op {
            Op::Alu { run, mode, to, from } => (*to, self.alu_bits(cta, at, (*run, *mode), from, lanes)),
            Op::Select { to, a, b, pick } => (*to, self.selected_bits(cta, at, (*a, *b), *pick, lanes)),
            Op::Copy { to, from } => (*to, self.frames[frame].undefined.column(*from).cloned()),
            Op::Join { to, from, bits } => (*to, self.joined_bits(at, from, *bits)),
            Op::Split { to, from, bits } => {
                let carried = self.frames[frame].undefined.column(*from).cloned();
                let flow = self.execute(cta, at, step, lanes)?;
                if let Some(carried) = carried {
                    self.split_bits(at, to, &carried, *bits, lanes);
                }
                return Ok(flow);
            }
            Op::Compare(compare) => {
                let truth = self.compared_bits(cta, at, compare, lanes);
                let flow = self.execute(cta, at, step, lanes)?;
                let undefined = &mut self.frames[frame].undefined;
                undefined.set_predicate(compare.to, truth.holds, |lane| truth.origins[lane], lanes);
                undefined.set_predicate(compare.opposite, truth.opposite, |lane| truth.origins[lane], lanes);
                return Ok(flow);
            }
            Op::Logic { to, a, b, table } => {
                let (bits, origins) = self.logic_bits(at, (*a, *b), *table);
                let flow = self.execute(cta, at, step, lanes)?;
                self.frames[frame].undefined.set_predicate(*to, bits, |lane| origins[lane], lanes);
                return Ok(flow);
            }
            op => {
                op.operands(&mut |operand| match operand {
                    _ if !cta.launch.rules.has(ValueRule::Decisions) => {}
                    OperandUse::Uses(source) => self.use_all(cta, at, source, lanes),
                    OperandUse::UsesPredicate(source) => self.use_predicate(cta, at, source, lanes),
                    _ => {}
                });
                return self.execute(cta, at, step, lanes);
            }
        };
        let flow = self.execute(cta, at, step, lanes)?;
        if let Some(carried) = carried {
            self.frames[frame].undefined.set(to, &carried, lanes);
        }
        Ok(flow)
    }

    /// A predicate decides something: reports lanes in which it is undefined.
    pub(super) fn use_predicate(&mut self, cta: &Cta<'_>, at: usize, source: PredSource, lanes: u32) {
        let LaneGroup { pc, frame, .. } = self.lane_groups[at];
        let undefined = &mut self.frames[frame].undefined;
        let used = undefined.predicate(source) & lanes;
        if used == 0 {
            return;
        }
        let origins: [Origin; LANES] = std::array::from_fn(|lane| undefined.predicate_origin(source, lane));
        undefined.define_predicate(source.pred, used);
        self.report_uses(cta, pc, &origins, used);
    }

    /// A value decides something: reports lanes in which any bit of it is undefined.
    pub(super) fn use_all(&mut self, cta: &Cta<'_>, at: usize, source: Source, lanes: u32) {
        let undefined = &self.frames[self.lane_groups[at].frame].undefined;
        let used = undefined.lanes(source, lanes, u64::MAX);
        self.use_lanes(cta, at, source, used);
    }

    /// A value is computed with: reports lanes in which it has bits that were read from memory. The lanes that are left have bits of a register
    /// that was never assigned: compilers compute with such registers and drop the result.
    fn use_computing(
        &mut self,
        cta: &Cta<'_>,
        at: usize,
        source: Source,
        lanes: u32,
        rule: ValueRule,
    ) -> u32 {
        let undefined = &self.frames[self.lane_groups[at].frame].undefined;
        let Some(carried) = undefined.column(source) else { return 0 };
        let marked = lanes_where(lanes, |lane| carried.bits[lane] != 0);
        let is_use = |lane: usize| {
            carried.origins[lane].is_memory() || !cta.launch.rules.has(ValueRule::UnassignedArithmetic)
        };
        let used = lanes_where(marked, is_use);
        if !cta.launch.rules.has(rule) {
            return 0;
        }
        self.use_lanes(cta, at, source, used);
        marked & !used
    }

    /// Reports the use of a value in some lanes; it counts as defined from here on, so that it is told once.
    fn use_lanes(&mut self, cta: &Cta<'_>, at: usize, source: Source, used: u32) {
        let LaneGroup { pc, frame, .. } = self.lane_groups[at];
        let undefined = &mut self.frames[frame].undefined;
        let Some(origins) = undefined.column(source).map(|carried| carried.origins) else { return };
        if used != 0 {
            undefined.define(Reg(source.0), used);
            self.report_uses(cta, pc, &origins, used);
        }
    }

    pub(super) fn report_uses(&self, cta: &Cta<'_>, pc: u32, origins: &[Origin; LANES], used: u32) {
        let mut told: Vec<u32> = Vec::new();
        each(used, |lane| {
            let from = origins[lane].pc_or(pc);
            if !told.contains(&from) {
                told.push(from);
                cta.report_use(self.index, lane, pc, origins[lane]);
            }
        });
    }

    /// The undefined bits of a result.
    fn alu_bits(
        &mut self,
        cta: &Cta<'_>,
        at: usize,
        (run, mut mode): (Alu, Mode),
        from: &[Source; 4],
        lanes: u32,
    ) -> Option<Carried> {
        let frame = self.lane_groups[at].frame;
        if from.iter().all(|source| self.frames[frame].undefined.column(*source).is_none()) {
            return None;
        }
        if !cta.launch.rules.has(ValueRule::Bits) {
            mode.flow = DataFlow::Computes;
        }
        let mut carried = Carried::NOTHING;
        let mut spoiled = 0;
        for (_, source) in from.iter().enumerate().filter(|(place, _)| !mode.flow.is_data(*place)) {
            let left = self.use_computing(cta, at, *source, lanes, ValueRule::Arithmetic);
            if let Some(known) = self.frames[frame].undefined.column(*source) {
                each(left, |lane| carried.mark(lane, u64::MAX, known.origins[lane]));
            }
            spoiled |= left;
        }
        let undefined = &self.frames[frame].undefined;
        let known = from.map(|source| undefined.column(source));
        let data = |place: usize| known[place].filter(|_| mode.flow.is_data(place));
        if (0..4).all(|place| data(place).is_none()) {
            return (spoiled != 0).then_some(carried);
        }
        let values = from.map(|source| self.frames[frame].column(source, &cta.launch.constants));
        let bits: [&Column; 4] = std::array::from_fn(|place| data(place).map_or(&ZEROS, |known| &known.bits));
        let mut out = [0; LANES];
        match mode.flow {
            DataFlow::Computes => {}
            DataFlow::Moves(_) => {
                let pick = |place: usize| if mode.flow.is_data(place) { bits[place] } else { values[place] };
                let input = Input { mask: lanes, mode, a: pick(0), b: pick(1), c: pick(2), d: pick(3) };
                run(&input, &mut out);
            }
            DataFlow::Bitwise(_) | DataFlow::Lookup => each(lanes, |lane| {
                let table =
                    if let DataFlow::Bitwise(table) = mode.flow { table.into() } else { values[3][lane] };
                out[lane] = undefined_bitwise(
                    std::array::from_fn(|place| (values[place][lane], bits[place][lane])),
                    table,
                );
            }),
        }
        each(lanes & !spoiled, |lane| {
            let origin = (0..4).find(|place| bits[*place][lane] != 0).and_then(data);
            carried.mark(lane, out[lane], origin.map_or(Origin::NONE, |known| known.origins[lane]));
        });
        Some(carried)
    }

    fn selected_bits(
        &self,
        cta: &Cta<'_>,
        at: usize,
        (a, b): (Source, Source),
        pick: PredSource,
        lanes: u32,
    ) -> Option<Carried> {
        let frame = &self.frames[self.lane_groups[at].frame];
        let (undefined, picked) = (&frame.undefined, frame.test(pick));
        let unknown = undefined.predicate(pick);
        let sides = [a, b].map(|side| undefined.column(side));
        if unknown == 0 && sides.iter().all(Option::is_none) {
            return None;
        }
        let values = [a, b].map(|side| frame.column(side, &cta.launch.constants));
        let mut carried = Carried::NOTHING;
        each(lanes, |lane| {
            if unknown >> lane & 1 != 0 || !cta.launch.rules.has(ValueRule::Selection) {
                let differ = values[0][lane] ^ values[1][lane];
                let bits = sides.iter().flatten().fold(differ, |bits, side| bits | side.bits[lane]);
                let side = sides.iter().flatten().find(|side| side.bits[lane] != 0);
                let origin = undefined.predicate_origin(pick, lane);
                carried.mark(lane, bits, side.map_or(origin, |side| side.origins[lane]));
            } else if let Some(side) = sides[usize::from(picked >> lane & 1 == 0)] {
                carried.mark(lane, side.bits[lane], side.origins[lane]);
            }
        });
        Some(carried)
    }

    fn joined_bits(&self, at: usize, from: &[Source], bits: u8) -> Option<Carried> {
        let undefined = &self.frames[self.lane_groups[at].frame].undefined;
        let ones = u64::MAX >> (64 - u32::from(bits));
        let mut carried = None;
        for (part, source) in (0u32..).zip(from) {
            let Some(known) = undefined.column(*source) else { continue };
            let carried = carried.get_or_insert(Carried::NOTHING);
            let shift = part * u32::from(bits);
            each(u32::MAX, |lane| {
                let bits = (known.bits[lane] & ones).checked_shl(shift).unwrap_or(0);
                carried.mark(lane, bits, known.origins[lane]);
            });
        }
        carried
    }

    fn split_bits(&mut self, at: usize, to: &[Reg], known: &Carried, bits: u8, lanes: u32) {
        let ones = u64::MAX >> (64 - u32::from(bits));
        for (part, to) in (0u32..).zip(to) {
            let shift = part * u32::from(bits);
            let bits = known.bits.map(|undefined| undefined.checked_shr(shift).unwrap_or(0) & ones);
            let part = Carried { bits, origins: known.origins };
            self.frames[self.lane_groups[at].frame].undefined.set(*to, &part, lanes);
        }
    }

    /// Where a comparison and its opposite are undefined.
    fn compared_bits(&mut self, cta: &Cta<'_>, at: usize, compare: &Compare, lanes: u32) -> UndefinedTruth {
        let frame = self.lane_groups[at].frame;
        let mut origins = [Origin::NONE; LANES];
        let mut unknown = 0;
        for source in [compare.a, compare.b] {
            let left = self.use_computing(cta, at, source, lanes, ValueRule::Comparison);
            if let Some(known) = self.frames[frame].undefined.column(source) {
                each(left, |lane| origins[lane] = known.origins[lane]);
            }
            unknown |= left;
        }
        let Some((combine, with)) = compare.combine else {
            return UndefinedTruth { holds: unknown, opposite: unknown, origins };
        };
        let frame = &self.frames[frame];
        let unknown_with = frame.undefined.predicate(with) & lanes;
        each(unknown_with & !unknown, |lane| origins[lane] = frame.undefined.predicate_origin(with, lane));
        let [a, b] = [compare.a, compare.b].map(|source| frame.column(source, &cta.launch.constants));
        let holds = (compare.test)(&Input { mask: lanes, mode: compare.mode, a, b, c: b, d: b });
        let truth = |holds: u32| {
            // The result under both values of what is unknown.
            let all = [
                (holds | unknown, true),
                (holds & !unknown, true),
                (holds | unknown, false),
                (holds & !unknown, false),
            ];
            let results = all.map(|(holds, high)| {
                let with = frame.test(with);
                combine.apply(holds, if high { with | unknown_with } else { with & !unknown_with })
            });
            lanes
                & (results[0] | results[1] | results[2] | results[3])
                & !(results[0] & results[1] & results[2] & results[3])
        };
        UndefinedTruth { holds: truth(holds), opposite: truth(!holds), origins }
    }

    fn logic_bits(&self, at: usize, (a, b): (PredSource, PredSource), table: u8) -> (u32, [Origin; LANES]) {
        let frame = &self.frames[self.lane_groups[at].frame];
        let unknown = [a, b].map(|source| frame.undefined.predicate(source));
        if unknown == [0; 2] {
            return (0, [Origin::NONE; LANES]);
        }
        // The table has no third operand: each of its bits stands for both values of one.
        let wide = (0..4u32).fold(0, |wide, place| wide | (u64::from(table >> place & 1) * 3) << (2 * place));
        let operand = |source: PredSource, unknown: u32| (u64::from(frame.test(source)), u64::from(unknown));
        let bits = undefined_bitwise([operand(a, unknown[0]), operand(b, unknown[1]), (0, 0)], wide) as u32;
        let origins = std::array::from_fn(|lane| {
            let source = if unknown[0] >> lane & 1 != 0 { a } else { b };
            frame.undefined.predicate_origin(source, lane)
        });
        (bits, origins)
    }
}

const ZEROS: Column = [0; LANES];
