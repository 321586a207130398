//! When ranks came to their collectives, where their clocks cannot be compared.
//!
//! The virtual clock of a simulated machine begins with the first device of it, and stands still while the rank waits for others. So
//! after each collective the clocks of its ranks are put together again: it ends at one moment for all of them, and who comes last to the
//! next one is the rank whose own work since then took longest.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::rank_log::{CollectiveKey, RankLog};
use super::time_axis::{TimeAxes, TimeAxis, axis_of};

/// The parts of one clock's ranks in one collective.
#[derive(Clone, Copy)]
struct OwnPart {
    /// When its first rank came.
    begin_ns: u64,
    /// When its last rank was done.
    end_ns: u64,
}

/// What is added to the times of each clock of recordings at each of their collectives.
pub(super) struct CollectiveOrder {
    shifts: BTreeMap<(TimeAxis, CollectiveKey), i128>,
}

impl CollectiveOrder {
    /// Goes through the collectives of all recordings, each when all its ranks came to it. Where `begin_together`, the clocks are taken to begin at
    /// one moment; otherwise the first collective of a clock is where it is put together with others.
    pub(super) fn of(logs: &[&RankLog], axes: &TimeAxes, begin_together: bool) -> Self {
        let axes: Vec<TimeAxis> = axes.all().collect();
        let parts: Vec<BTreeMap<CollectiveKey, OwnPart>> =
            axes.iter().map(|axis| own_parts(logs, *axis)).collect();
        let mut queues: Vec<VecDeque<CollectiveKey>> = parts.iter().map(in_order).collect();
        let mut wanted: BTreeMap<CollectiveKey, usize> = BTreeMap::new();
        parts.iter().flat_map(|own| own.keys()).for_each(|key| *wanted.entry(key.clone()).or_default() += 1);
        let mut clocks: Vec<Option<i128>> = vec![begin_together.then_some(0); axes.len()];
        let mut order = Self { shifts: BTreeMap::new() };
        let mut passed = BTreeSet::new();
        while let Some(next) = next_call(&queues, &parts, &clocks, &wanted) {
            order.pass(&next, (&axes, &parts), &mut clocks);
            passed.insert(next);
            for queue in &mut queues {
                // Several, where recordings miss calls, or have them in a different order.
                while queue.front().is_some_and(|key| passed.contains(key)) {
                    queue.pop_front();
                }
            }
        }
        order
    }

    /// What is added to the times of a clock at a collective.
    pub(super) fn shift(&self, axis: TimeAxis, key: &CollectiveKey) -> i128 {
        self.shifts.get(&(axis, key.clone())).copied().unwrap_or_default()
    }

    /// Notes the clocks with which ranks came to a collective, and puts them together at its end.
    fn pass(
        &mut self,
        key: &CollectiveKey,
        (axes, parts): (&[TimeAxis], &[BTreeMap<CollectiveKey, OwnPart>]),
        clocks: &mut [Option<i128>],
    ) {
        let own = || parts.iter().enumerate().filter_map(|(at, own)| Some((at, *own.get(key)?)));
        let known = own().filter_map(|(at, part)| Some(i128::from(part.end_ns) + (*clocks.get(at)?)?));
        // Of clocks that were not put together yet, the one that is longest under way has its own clock.
        let end = known.max().or_else(|| own().map(|(_, part)| part.end_ns.into()).max()).unwrap_or_default();
        for (at, part) in own() {
            let Some((clock, axis)) = clocks.get_mut(at).zip(axes.get(at)) else { continue };
            let after = end - i128::from(part.end_ns);
            self.shifts.insert((*axis, key.clone()), clock.unwrap_or(after));
            *clock = Some(after);
        }
    }
}

/// The next call: one that is the next on all clocks that have it; or else the one that began first.
fn next_call(
    queues: &[VecDeque<CollectiveKey>],
    parts: &[BTreeMap<CollectiveKey, OwnPart>],
    clocks: &[Option<i128>],
    wanted: &BTreeMap<CollectiveKey, usize>,
) -> Option<CollectiveKey> {
    let mut ready: BTreeMap<&CollectiveKey, usize> = BTreeMap::new();
    let mut first: Option<(i128, &CollectiveKey)> = None;
    for ((queue, own), clock) in queues.iter().zip(parts).zip(clocks) {
        let Some(key) = queue.front() else { continue };
        let count = ready.entry(key).or_default();
        *count += 1;
        if Some(&*count) == wanted.get(key) {
            return Some(key.clone());
        }
        let begin = own.get(key).map_or(0, |part| part.begin_ns.into()) + clock.unwrap_or_default();
        if first.is_none_or(|(known, _)| begin < known) {
            first = Some((begin, key));
        }
    }
    first.map(|(_, key)| key.clone())
}

fn own_parts(logs: &[&RankLog], axis: TimeAxis) -> BTreeMap<CollectiveKey, OwnPart> {
    let mut parts: BTreeMap<CollectiveKey, OwnPart> = BTreeMap::new();
    let Some(log) = logs.get(axis.recording) else { return parts };
    for call in log.calls().iter().filter(|call| axis_of(axis.recording, log, call) == axis) {
        let Some(span) = call.span else { continue };
        let new = OwnPart { begin_ns: span.begin_ns, end_ns: span.end_ns };
        let part = parts.entry(call.key()).or_insert(new);
        part.begin_ns = part.begin_ns.min(span.begin_ns);
        part.end_ns = part.end_ns.max(span.end_ns);
    }
    parts
}

/// The calls on a clock, by when they began.
fn in_order(parts: &BTreeMap<CollectiveKey, OwnPart>) -> VecDeque<CollectiveKey> {
    let mut order: Vec<(&CollectiveKey, &OwnPart)> = parts.iter().collect();
    order.sort_by_key(|(_, part)| (part.begin_ns, part.end_ns));
    order.into_iter().map(|(key, _)| key.clone()).collect()
}
