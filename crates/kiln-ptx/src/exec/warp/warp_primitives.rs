//! Warp-level operations.
//!
//! A collective names its members. It happens when all of them that have not exited have arrived, on whatever path;
//! until then those who came first wait.

use super::lane_group::{LaneGroup, State};
use super::{Flow, Warp};
use crate::exec::block::Cta;
use crate::exec::check::ValueRule;
use crate::exec::finding::ExecFindingKind;
use crate::exec::lowered_code::{Collective, CollectiveKind, Op};
use crate::exec::undefined::{Carried, Origin};
use crate::exec::warp_register::{Column, LANES, each, first_lane, lanes_where, uniform};
use crate::{Operation, ScalarType, Shuffle, Vote};

/// What the members bring.
pub(super) struct Gathered {
    members: u32,
    pub(super) values: [Column; 3],
    pred: u32,
}

/// What each member receives.
struct Given {
    column: Column,
    pred: u32,
    /// Lanes that took a value from a lane that does not take part.
    undefined: u32,
}

impl Warp {
    pub(super) fn collective(&mut self, cta: &mut Cta<'_>, at: usize, collective: &Collective) -> Flow {
        let LaneGroup { mask, pc, frame, .. } = self.lane_groups[at];
        let Some(members) = collective.members else {
            self.perform(cta, collective.kind, mask, &[at]);
            return Flow::Next;
        };
        let named = *self.frames[frame].column(members, &cta.launch.constants);
        let missing = lanes_where(mask, |lane| named[lane] >> lane & 1 == 0);
        if missing != 0 {
            let text = format!(
                "the mask {:#010x} does not name the thread that uses it; name the lanes that execute the instruction",
                named[first_lane(missing)]
            );
            cta.report(self.index, first_lane(missing), pc, ExecFindingKind::Mask(text));
        }
        self.note_width(cta, at, collective);
        if let Some(named) = uniform(&named, mask) {
            if named as u32 & self.live & !mask == 0 {
                self.tell_absent_lanes(cta, at, named as u32, mask);
                self.perform(cta, collective.kind, mask, &[at]);
                return Flow::Next;
            }
            self.lane_groups[at].state = State::Collective;
        } else {
            // Groups of lanes name different members: each is a separate lane group from here on.
            let mut rest = mask;
            while let Some(first) = (rest != 0).then(|| named[first_lane(rest)]) {
                let group = lanes_where(rest, |lane| named[lane] == first);
                rest &= !group;
                if rest != 0 {
                    self.split(at, group, pc);
                }
                let split = if rest == 0 { Some(at) } else { self.lane_groups.len().checked_sub(1) };
                if let Some(lane_group) = split.and_then(|at| self.lane_groups.get_mut(at)) {
                    lane_group.state = State::Collective;
                    lane_group.unlike = first as u32 & mask & !group;
                }
            }
        }
        self.fire_collectives(cta);
        Flow::Switch
    }

    /// Lets every collective happen whose members are all there.
    pub(super) fn fire_collectives(&mut self, cta: &mut Cta<'_>) {
        while let Some((kind, named, lane_groups)) = self.complete_collective(cta) {
            let lanes = lane_groups.iter().fold(0, |mask, at| mask | self.lane_groups[*at].mask);
            if let Some(first) = lane_groups.first() {
                self.tell_absent_lanes(cta, *first, named, lanes);
            }
            self.perform(cta, kind, lanes, &lane_groups);
            for at in lane_groups {
                self.lane_groups[at].state = State::Ready;
                self.lane_groups[at].repeats = None;
                self.lane_groups[at].unlike = 0;
                self.lane_groups[at].pc += 1;
            }
        }
    }

    fn complete_collective(&self, cta: &Cta<'_>) -> Option<(CollectiveKind, u32, Vec<usize>)> {
        let waiting = || self.lane_groups.iter().enumerate().filter(|(_, s)| s.state == State::Collective);
        waiting().find_map(|(at, _)| {
            let (kind, named) = self.named(cta, at)?;
            let same: Vec<usize> = waiting()
                .map(|(other, _)| other)
                .filter(|o| self.named(cta, *o) == Some((kind, named)))
                .collect();
            let arrived = same.iter().fold(0, |mask, at| mask | self.lane_groups[*at].mask);
            (named & self.live & !arrived == 0).then_some((kind, named, same))
        })
    }

    /// What a waiting lane group waits for.
    fn named(&self, cta: &Cta<'_>, at: usize) -> Option<(CollectiveKind, u32)> {
        let LaneGroup { mask, pc, frame, .. } = self.lane_groups[at];
        let Some(Op::Collective(collective)) = Self::code(cta).steps.get(pc as usize).map(|s| &s.op) else {
            return None;
        };
        let named = self.frames[frame].column(collective.members?, &cta.launch.constants);
        Some((collective.kind, named[first_lane(mask)] as u32))
    }

    /// Does it, for the lanes of these lane groups.
    fn perform(&mut self, cta: &mut Cta<'_>, kind: CollectiveKind, lanes: u32, lane_groups: &[usize]) {
        if let CollectiveKind::Matrix(step) = kind {
            return self.perform_matrix(cta, step, lanes, lane_groups);
        }
        let code = Self::code(cta);
        let operation =
            |at: usize, warp: &Self| match code.steps.get(warp.lane_groups[at].pc as usize).map(|s| &s.op) {
                Some(Op::Collective(collective)) => Some(&**collective),
                _ => None,
            };
        let mut gathered = Gathered { members: lanes, values: [[0; LANES]; 3], pred: 0 };
        for at in lane_groups {
            let LaneGroup { mask, frame, .. } = self.lane_groups[*at];
            let Some(collective) = operation(*at, self) else { continue };
            let frame = &self.frames[frame];
            for (value, source) in gathered.values.iter_mut().zip(collective.from) {
                let column = frame.column(source, &cta.launch.constants);
                each(mask, |lane| value[lane] = column[lane]);
            }
            gathered.pred |= frame.test(collective.pred) & mask;
        }
        let given = combine(kind, &gathered);
        let carried = self.shuffled_bits(cta, kind, &gathered, given.undefined, lane_groups);
        for at in lane_groups {
            let LaneGroup { mask, frame, .. } = self.lane_groups[*at];
            let Some(collective) = operation(*at, self) else { continue };
            let frame = &mut self.frames[frame];
            frame.write(collective.to, &given.column, mask);
            frame.set(collective.to_pred, given.pred, mask);
            if let Some(carried) = &carried {
                frame.undefined.set(collective.to, carried, mask);
            }
        }
        if let Some(races) = &mut cta.races {
            if kind == CollectiveKind::Sync {
                races.clocks.meet_lanes(self.index, lanes);
            } else if !cta.mbarriers.is_empty() {
                races.note_meeting(self.index, lanes);
            }
        }
    }
}

impl Warp {
    /// The undefined bits that lanes take from others; `untaken` are the lanes that found no other lane to take a value from.
    fn shuffled_bits(
        &self,
        cta: &Cta<'_>,
        kind: CollectiveKind,
        gathered: &Gathered,
        untaken: u32,
        lane_groups: &[usize],
    ) -> Option<Carried> {
        let CollectiveKind::Shuffle(mode) = kind else { return None };
        if !cta.launch.rules.has(ValueRule::Shuffle) {
            return None;
        }
        let is_followed = cta.launch.options.checks.uninitialised;
        let mut sources = (untaken != 0 && is_followed).then_some(Carried::NOTHING);
        let mut pcs = [0; LANES];
        for at in lane_groups {
            let LaneGroup { mask, pc, frame, .. } = self.lane_groups[*at];
            let Some(Op::Collective(collective)) = Self::code(cta).steps.get(pc as usize).map(|s| &s.op)
            else {
                continue;
            };
            each(mask, |lane| pcs[lane] = pc);
            self.report_untaken(cta, gathered, mode, untaken & mask, pc);
            let Some(known) = self.frames[frame].undefined.column(collective.from[0]) else { continue };
            let all = sources.get_or_insert(Carried::NOTHING);
            each(mask, |lane| all.mark(lane, known.bits[lane], known.origins[lane]));
        }
        let sources = sources?;
        let Gathered { members, values: [_, b, c], .. } = gathered;
        let mut carried = Carried::NOTHING;
        each(*members, |lane| {
            let (from, inside) = source_lane(mode, lane, b[lane], c[lane]);
            if untaken >> lane & 1 != 0 && is_followed {
                let (pc, thread) = (pcs[lane], (self.index * LANES + lane) as u32);
                let why = self.absence(cta, pc, from);
                let origin = Origin::Lane { pc, block: cta.index, thread, from: from as u8, why };
                return carried.mark(lane, u64::from(u32::MAX), origin);
            }
            let from = if inside && members >> from & 1 != 0 { from } else { lane };
            carried.mark(lane, sources.bits[from], sources.origins[from]);
        });
        Some(carried)
    }

    /// Notes a shuffle whose segments no width of CUDA C gives: there it is undefined, and PTX has a result.
    fn note_width(&self, cta: &Cta<'_>, at: usize, collective: &Collective) {
        let LaneGroup { mask, pc, frame, .. } = self.lane_groups[at];
        if !matches!(collective.kind, CollectiveKind::Shuffle(_)) || !cta.launch.options.checks.barriers {
            return;
        }
        let lane = first_lane(mask);
        let packed = self.frames[frame].column(collective.from[2], &cta.launch.constants)[lane];
        let segment = packed >> 8 & 31;
        // 32 less a power of two.
        if segment == 0 || (LANES as u64 - segment).is_power_of_two() {
            return;
        }
        if cta.launch.log.count_again((pc, pc), |known| matches!(known, ExecFindingKind::Mask(_))) {
            return;
        }
        let width = LANES as u64 - segment;
        let text = format!(
            "the shuffle has a width of {width} lanes, and CUDA C defines 1, 2, 4, 8, 16 and 32 alone; use a power of two"
        );
        cta.report_note(self.index, lane, pc, ExecFindingKind::Mask(text));
    }
}

fn combine(kind: CollectiveKind, gathered: &Gathered) -> Given {
    let Gathered { members, values: [a, b, c], pred } = gathered;
    let (members, pred) = (*members, *pred);
    let same = |value: u64| Given { column: [value; LANES], pred: 0, undefined: 0 };
    let truth =
        |holds: bool| Given { column: [0; LANES], pred: if holds { u32::MAX } else { 0 }, undefined: 0 };
    match kind {
        CollectiveKind::Sync | CollectiveKind::Matrix(_) => same(0),
        CollectiveKind::Shuffle(mode) => shuffle(mode, members, a, b, c),
        CollectiveKind::Vote(Vote::All) => truth(pred == members),
        CollectiveKind::Vote(Vote::Any) => truth(pred != 0),
        CollectiveKind::Vote(Vote::Uni) => truth(pred == members || pred == 0),
        CollectiveKind::Vote(Vote::Ballot) => same(u64::from(pred)),
        CollectiveKind::MatchAny { wide } => {
            let mut column = [0; LANES];
            each(members, |lane| {
                column[lane] = u64::from(lanes_where(members, |other| equal(a[lane], a[other], wide)));
            });
            Given { column, pred: 0, undefined: 0 }
        }
        CollectiveKind::MatchAll { wide } => {
            let first = a[first_lane(members)];
            let all = lanes_where(members, |lane| equal(a[lane], first, wide)) == members;
            Given { column: [if all { u64::from(members) } else { 0 }; LANES], ..truth(all) }
        }
        CollectiveKind::Reduce(operation, ty) => same(reduce(operation, ty, members, a)),
        CollectiveKind::Elect => {
            let leader = first_lane(members);
            Given { column: [leader as u64; LANES], pred: 1 << leader, undefined: 0 }
        }
    }
}

fn equal(a: u64, b: u64, wide: bool) -> bool {
    if wide { a == b } else { a as u32 == b as u32 }
}

/// Values from other lanes. A lane outside of its segment, or one that does not take part, gives the own value.
fn shuffle(mode: Shuffle, members: u32, a: &Column, b: &Column, c: &Column) -> Given {
    let mut given = Given { column: *a, pred: 0, undefined: 0 };
    each(members, |lane| {
        let (from, inside) = source_lane(mode, lane, b[lane], c[lane]);
        if inside {
            given.pred |= 1 << lane;
            match members >> from & 1 {
                0 => given.undefined |= 1 << lane,
                _ => given.column[lane] = a[from],
            }
        }
    });
    given
}

/// The lane a shuffle takes its value from, and whether it lies in the segment of the lane.
pub(super) fn source_lane(mode: Shuffle, lane: usize, b: u64, c: u64) -> (usize, bool) {
    let (by, clamp, segment) = (b as i64 & 31, c as i64 & 31, c as i64 >> 8 & 31);
    let lane = lane as i64;
    let (lowest, highest) = (lane & segment, (lane & segment) | (clamp & !segment));
    let (from, inside) = match mode {
        Shuffle::Up => (lane - by, lane - by >= highest),
        Shuffle::Down => (lane + by, lane + by <= highest),
        Shuffle::Bfly => (lane ^ by, lane ^ by <= highest),
        Shuffle::Idx => (lowest | (by & !segment), lowest | (by & !segment) <= highest),
    };
    (from as usize & (LANES - 1), inside)
}

fn reduce(operation: Operation, ty: ScalarType, members: u32, a: &Column) -> u64 {
    let signed = ty == ScalarType::S32;
    let mut values = (0..LANES).filter(|lane| members >> lane & 1 != 0).map(|lane| a[lane] as u32);
    let Some(first) = values.next() else { return 0 };
    u64::from(values.fold(first, |x, y| match operation {
        Operation::Add => x.wrapping_add(y),
        Operation::Min if signed => (x as i32).min(y as i32) as u32,
        Operation::Max if signed => (x as i32).max(y as i32) as u32,
        Operation::Min => x.min(y),
        Operation::Max => x.max(y),
        Operation::And => x & y,
        Operation::Or => x | y,
        _ => x ^ y,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exec::warp_register::FULL;

    #[test]
    fn shuffles_stay_in_their_segment() {
        let lanes: Column = std::array::from_fn(|lane| lane as u64);
        // `__shfl_down_sync` with a width of 8.
        let width8 = [(32 - 8) << 8 | 31; LANES];
        let down = shuffle(Shuffle::Down, FULL, &lanes, &[2; LANES], &width8);
        assert_eq!(down.column[3], 5);
        assert_eq!((down.column[6], down.pred >> 6 & 1), (6, 0));
        let up = shuffle(Shuffle::Up, FULL, &lanes, &[1; LANES], &[(32 - 8) << 8; LANES]);
        assert_eq!((up.column[8], up.column[9]), (8, 8));
        let idx = shuffle(Shuffle::Idx, FULL, &lanes, &[3; LANES], &width8);
        assert_eq!((idx.column[0], idx.column[31]), (3, 27));
        let bfly = shuffle(Shuffle::Bfly, FULL, &lanes, &[16; LANES], &[31; LANES]);
        assert_eq!(bfly.column[5], 21);
    }
}
