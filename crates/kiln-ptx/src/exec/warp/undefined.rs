//! Steps of a frame in which a register holds undefined bits.

use kiln_lanes::InstructionSet;

use super::lane_group::LaneGroup;
use super::{Done, Flow, Warp};
use crate::exec::alu::{Alu, Input, Mode};
use crate::exec::block::Cta;
use crate::exec::check::{ValueRule, ValueRules};
use crate::exec::lowered_code::{Carry, CarryKind, Compare, Op, OperandUse, PredSource, Reg, Source, Step};
use crate::exec::undefined::{
    Carried, DataFlow, Origin, undefined_arithmetic, undefined_bitwise, undefined_comparison, upward,
};
use crate::exec::warp_register::{Column, LANES, each, lanes_where};

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
            Op::Alu { run, mode, to, from } => {
                let carried = self.alu_bits(cta, at, (*run, *mode), (from, *to), lanes);
                (*to, carried.map(|carried| self.compared(cta, at, (*run, *mode), from, carried)))
            }
            Op::Select { to, a, b, pick } => (*to, self.selected_bits(cta, at, (*a, *b), *pick, lanes)),
            Op::Copy { to, from } => (*to, self.copied(cta, at, *from)),
            Op::Join { to, from, bits } => (*to, self.joined_bits(at, from, *bits)),
            Op::Split { to, from, bits } => {
                let known = self.frames[frame].undefined.column(*from);
                let carried = known.map(Carried::without_alternatives);
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
                let (bits, origins) = self.logic_bits(cta, at, (*a, *b), *table);
                let flow = self.execute(cta, at, step, lanes)?;
                self.frames[frame].undefined.set_predicate(*to, bits, |lane| origins[lane], lanes);
                return Ok(flow);
            }
            Op::Carry(carry) => {
                let (result, flag) = self.carry_bits(cta, at, carry, lanes);
                let flow = self.execute(cta, at, step, lanes)?;
                let undefined = &mut self.frames[frame].undefined;
                undefined.set(carry.to, &result, lanes);
                if carry.writes {
                    undefined.set_carry(&flag, lanes);
                }
                return Ok(flow);
            }
            Op::Branch { target, when } if self.is_decided_later(cta, at, *target, *when, lanes) => {
                return self.execute(cta, at, step, lanes);
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
        if let Some(mut carried) = carried {
            self.frames[frame].undefined.put(to, &mut carried, lanes);
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
        each(used, |lane| undefined.define_all_from(origins[lane], lane));
        self.report_uses(cta, pc, &origins, used);
    }

    /// A value decides something: reports lanes in which any bit of it is undefined.
    pub(super) fn use_all(&mut self, cta: &Cta<'_>, at: usize, source: Source, lanes: u32) {
        let undefined = &self.frames[self.lane_groups[at].frame].undefined;
        let used = undefined.lanes(source, lanes, u64::MAX);
        self.use_lanes(cta, at, source, used);
    }

    /// Reports the use of a value in some lanes. What comes from the same read counts as defined from here on, so that it is told once.
    fn use_lanes(&mut self, cta: &Cta<'_>, at: usize, source: Source, used: u32) {
        let LaneGroup { pc, frame, .. } = self.lane_groups[at];
        let undefined = &mut self.frames[frame].undefined;
        let Some(origins) = undefined.column(source).map(|carried| carried.origins) else { return };
        each(used, |lane| undefined.define_all_from(origins[lane], lane));
        self.report_uses(cta, pc, &origins, used);
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
        (from, to): (&[Source; 4], Reg),
        lanes: u32,
    ) -> Option<Carried> {
        let (frame, rules) = (self.lane_groups[at].frame, cta.launch.rules);
        if from.iter().all(|source| self.frames[frame].undefined.column(*source).is_none()) {
            return None;
        }
        mode.flow = known_flow(mode.flow, rules);
        let mut carried = Carried::NOTHING;
        for (_, source) in from.iter().enumerate().filter(|(place, _)| !mode.flow.is_data(*place)) {
            self.compute_with(cta, at, *source, lanes, &mut carried);
        }
        let ones = self.ones(cta, at, to);
        let spoiled = if rules.has(ValueRule::Arithmetic) { carried.lanes() } else { 0 };
        let undefined = &self.frames[frame].undefined;
        let known = from.map(|source| undefined.column(source));
        let values = from.map(|source| self.frames[frame].column(source, &cta.launch.constants));
        each(u32::MAX, |lane| {
            let computed = |place: usize| known[place].filter(|_| !mode.flow.is_data(place));
            let operand =
                |place: usize| (values[place][lane], computed(place).map_or(0, |known| known.bits[lane]));
            let is_spoiled = spoiled >> lane & 1 != 0;
            let bits = || undefined_arithmetic(mode.flow, std::array::from_fn(operand));
            carried.bits[lane] = if is_spoiled { bits() & ones } else { 0 };
        });
        let data = |place: usize| known[place].filter(|_| mode.flow.is_data(place));
        if (0..4).all(|place| data(place).is_none()) {
            return (spoiled != 0).then_some(carried);
        }
        let bits: [&Column; 4] = std::array::from_fn(|place| data(place).map_or(&ZEROS, |known| &known.bits));
        let out = data_bits((run, mode), &values, &bits, lanes);
        each(lanes & !spoiled, |lane| {
            let mut origins = (0..4).filter(|place| bits[*place][lane] != 0).filter_map(data);
            let first = origins.next().map_or(Origin::NONE, |known| known.origins[lane]);
            // What was computed from one operand is no padding, whatever it is combined with.
            let computed = origins.map(|known| known.origins[lane]).find(|origin| !origin.may_be_padding());
            let origin = if first.may_be_padding() { computed.unwrap_or(first) } else { first };
            carried.mark(lane, out[lane] & ones, origin);
        });
        Some(carried)
    }

    /// Adds the undefined bits of a value that a result is computed from.
    fn compute_with(&mut self, cta: &Cta<'_>, at: usize, source: Source, lanes: u32, carried: &mut Carried) {
        if !cta.launch.rules.has(ValueRule::Computing) {
            self.use_all(cta, at, source, lanes);
        }
        let undefined = &self.frames[self.lane_groups[at].frame].undefined;
        if let Some(known) = undefined.column(source) {
            each(lanes, |lane| carried.mark(lane, known.bits[lane], known.origins[lane].computed()));
        }
    }

    /// A one for every bit of a register.
    fn ones(&self, cta: &Cta<'_>, at: usize, to: Reg) -> u64 {
        let function = self.frames[self.lane_groups[at].frame].function;
        let code = Self::code(cta).functions.get(function as usize);
        let bits = code.and_then(|code| code.widths.get(to.0 as usize)).copied().unwrap_or(64);
        u64::MAX >> (64 - u32::from(bits.clamp(1, 64)))
    }

    /// The undefined bits of arithmetic with the carry flag, and of the flag.
    fn carry_bits(&mut self, cta: &Cta<'_>, at: usize, carry: &Carry, lanes: u32) -> (Carried, Carried) {
        let mut flag = Carried::NOTHING;
        for source in carry.from {
            self.compute_with(cta, at, source, lanes, &mut flag);
        }
        let undefined = &self.frames[self.lane_groups[at].frame].undefined;
        if carry.reads && cta.launch.rules.has(ValueRule::CarryFlag) {
            each(lanes & undefined.carry(), |lane| flag.mark(lane, 1, undefined.carry_origin(lane)));
        }
        if !cta.launch.rules.has(ValueRule::Arithmetic) {
            return (Carried::NOTHING, Carried::NOTHING);
        }
        let ones = self.ones(cta, at, carry.to);
        let is_upward = !matches!(carry.kind, CarryKind::MultiplyAdd { high: true });
        let spread = |bits: u64| match bits {
            0 => 0,
            bits if is_upward && cta.launch.rules.has(ValueRule::LowBits) => upward(bits) & ones,
            _ => ones,
        };
        (Carried { bits: flag.bits.map(spread), ..flag.clone() }, flag)
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
            let part = Carried { bits, origins: known.origins, alternatives: None };
            self.frames[self.lane_groups[at].frame].undefined.set(*to, &part, lanes);
        }
    }

    /// Where a comparison and its opposite are undefined.
    fn compared_bits(&mut self, cta: &Cta<'_>, at: usize, compare: &Compare, lanes: u32) -> UndefinedTruth {
        let (frame, rules) = (self.lane_groups[at].frame, cta.launch.rules);
        let [mut a, mut b] = [Carried::NOTHING, Carried::NOTHING];
        self.compute_with(cta, at, compare.a, lanes, &mut a);
        self.compute_with(cta, at, compare.b, lanes, &mut b);
        let mut origins = a.origins;
        each(b.lanes() & !a.lanes(), |lane| origins[lane] = b.origins[lane]);
        let mut unknown = if rules.has(ValueRule::Comparison) { a.lanes() | b.lanes() } else { 0 };
        if unknown != 0 && rules.has(ValueRule::DecidedComparison) {
            let values =
                [compare.a, compare.b].map(|source| self.frames[frame].column(source, &cta.launch.constants));
            unknown = lanes_where(unknown, |lane| {
                let [a, b] = [(values[0][lane], a.bits[lane]), (values[1][lane], b.bits[lane])];
                undefined_comparison(compare.mode.flow, a, b, |a, b| {
                    let (a, b) = ([a; LANES], [b; LANES]);
                    let input = Input {
                        set: cta.launch.set,
                        mask: 1 << lane,
                        mode: &compare.mode,
                        a: &a,
                        b: &b,
                        c: &b,
                        d: &b,
                    };
                    (compare.test)(&input) != 0
                })
            });
        }
        let Some((combine, with)) = compare.combine else {
            return UndefinedTruth { holds: unknown, opposite: unknown, origins };
        };
        let frame = &self.frames[frame];
        let unknown_with = frame.undefined.predicate(with) & lanes;
        each(unknown_with & !unknown, |lane| origins[lane] = frame.undefined.predicate_origin(with, lane));
        let [a, b] = [compare.a, compare.b].map(|source| frame.column(source, &cta.launch.constants));
        let holds = (compare.test)(&Input {
            set: cta.launch.set,
            mask: lanes,
            mode: &compare.mode,
            a,
            b,
            c: b,
            d: b,
        });
        let truth = |holds: u32| {
            if !rules.has(ValueRule::PredicateLogic) {
                return unknown | unknown_with;
            }
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

    fn logic_bits(
        &self,
        cta: &Cta<'_>,
        at: usize,
        (a, b): (PredSource, PredSource),
        table: u8,
    ) -> (u32, [Origin; LANES]) {
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
        match cta.launch.rules.has(ValueRule::PredicateLogic) {
            true => (bits, origins),
            false => (unknown[0] | unknown[1], origins),
        }
    }
}

/// The undefined bits of a result of which the operands are moved or combined bit by bit.
fn data_bits((run, mode): (Alu, Mode), values: &[&Column; 4], bits: &[&Column; 4], lanes: u32) -> Column {
    let mut out = [0; LANES];
    match mode.flow {
        DataFlow::Moves(_) => {
            let pick = |place: usize| if mode.flow.is_data(place) { bits[place] } else { values[place] };
            run(
                &Input {
                    set: InstructionSet::PORTABLE,
                    mask: lanes,
                    mode: &mode,
                    a: pick(0),
                    b: pick(1),
                    c: pick(2),
                    d: pick(3),
                },
                &mut out,
            );
        }
        DataFlow::Bitwise(_) | DataFlow::Lookup => each(lanes, |lane| {
            let table = if let DataFlow::Bitwise(table) = mode.flow { table.into() } else { values[3][lane] };
            let operands = std::array::from_fn(|place| (values[place][lane], bits[place][lane]));
            out[lane] = undefined_bitwise(operands, table);
        }),
        _ => {}
    }
    out
}

/// How bits flow under the rules that hold.
pub(super) fn known_flow(flow: DataFlow, rules: ValueRules) -> DataFlow {
    let is_known = match flow {
        DataFlow::Sum | DataFlow::Difference | DataFlow::Negation => rules.has(ValueRule::LowBits),
        DataFlow::Product(_) | DataFlow::HighProduct(_) => rules.has(ValueRule::LowBits),
        DataFlow::BytesProduct | DataFlow::HalvesProduct { .. } => rules.has(ValueRule::LowBits),
        DataFlow::Extreme { .. } | DataFlow::TopBit { .. } => rules.has(ValueRule::DecidedComparison),
        _ if flow.is_packed() => rules.has(ValueRule::PackedParts),
        _ => true,
    };
    if is_known && rules.has(ValueRule::Bits) { flow } else { DataFlow::Computes }
}

const ZEROS: Column = [0; LANES];
