//! What is remembered of one place: the last plain write, and the reads and strong accesses since.
//!
//! A plain write that races with none of them is ordered behind all of them, and they are forgotten. A read or a strong access is kept until
//! a later one covers it. Where threads are ordered only by barriers of whole warps and blocks, two readers that are as far apart as
//! possible say as much as all of them: of two blocks, at most one is ordered with a writer. Elsewhere up to [`CAPACITY`] are kept, and
//! when there are more, of those that stand closest together one is dropped. That can hide a race but never invents one.
//!
//! The accesses stand in the order they were made in, so that it is known which writes a strong read or update observed.

use super::access_mark::{Mark, Touching};
use super::access_order::{Order, RaceCause, race};
use super::race_rule::RaceRule;

/// The most accesses kept of one place.
const CAPACITY: usize = 8;

/// An earlier access that races with a new one.
pub(super) type Raced = Option<(Mark, RaceCause)>;

/// Takes a new access in; the first remembered one it races with. `exact` keeps more than two readers.
pub(super) fn take<O: Order>(marks: &mut Vec<Mark>, new: Mark, order: &O, exact: bool) -> Raced {
    let observed = observed(marks, order);
    let unobserved = marks.iter().enumerate().filter(|(at, _)| observed >> at & 1 == 0);
    let raced = { unobserved }.find_map(|(_, old)| race(*old, new, order).map(|cause| (*old, cause)));
    if new.kind() == Touching::Write {
        marks.clear();
        marks.push(new);
        return raced;
    }
    let limit = if exact { CAPACITY } else { 4 };
    let alike = |old: &Mark| old.is_of_kind(new) && old.epoch() == new.epoch();
    if marks.len() == limit
        && let Some(at) = marks.iter().position(alike)
    {
        // One lane of the warp stands for all. Places that a whole block reads come here often.
        if new.kind().is_strong() {
            marks.remove(at);
            marks.push(new);
        }
        return raced;
    }
    marks.retain(|old| !is_over(*old, new, order));
    marks.push(new);
    if marks.len() > limit {
        drop_one(marks, order);
    }
    raced
}

/// The strong write that a new strong read observes, if the reader waited for a write behind it with no fence in between. What was observed before is not
/// told: no later read finds anything older.
pub(super) fn read_without_fence<O: Order>(marks: &[Mark], order: &O) -> Raced {
    let at = marks.iter().rposition(|mark| mark.kind().writes() && !mark.is_none())?;
    let write = marks[at];
    let is_known = |mark: &Mark| order.is_same_thread(*mark) || order.is_before(*mark);
    let is_observed = || marks[at + 1..].iter().any(|mark| mark.observes() && is_known(mark));
    let is_told = write.kind().is_strong() && !is_known(&write) && !is_observed() && order.lacks_fence(write);
    is_told.then_some((write, RaceCause::NoFence))
}

/// The strong writes that the new access is ordered behind because a strong read or update observed them which it is ordered behind, as a bit for
/// each place in the list.
fn observed<O: Order>(marks: &[Mark], order: &O) -> u32 {
    let mut all = 0;
    for (at, read) in marks.iter().enumerate().skip(1).filter(|(_, mark)| mark.observes()) {
        if !order.rules().has(RaceRule::Observation)
            || !(order.is_same_thread(*read) || order.is_before(*read))
        {
            continue;
        }
        let mut reader = *read;
        for (earlier, write) in marks[..at].iter().enumerate().rev().filter(|(_, mark)| mark.kind().writes())
        {
            if !meets(*write, reader, order) {
                break;
            }
            all |= 1 << earlier;
            // An update observes what was there before it; a store does not.
            if write.kind() != Touching::Update {
                break;
            }
            reader = *write;
        }
    }
    all
}

/// Whether a write that came before a strong read was observed by it, and the new access is ordered behind that read.
#[inline(always)]
pub(super) fn is_observed<O: Order>(write: Mark, read: Mark, order: &O) -> bool {
    write.kind().writes()
        && read.observes()
        && order.rules().has(RaceRule::Observation)
        && (order.is_same_thread(read) || order.is_before(read))
        && meets(write, read, order)
}

/// Whether two accesses are strong, of one size, and each in the scope of the other.
fn meets<O: Order>(a: Mark, b: Mark, order: &O) -> bool {
    let is_same_block = || order.warp_and_block(a).1 == order.warp_and_block(b).1;
    a.kind().is_strong()
        && b.kind().is_strong()
        && a.size() == b.size()
        && (a.is_wide() && b.is_wide() || is_same_block())
}

/// Whether an old access need not be remembered beside a new one that is no plain write.
#[inline(always)]
pub(super) fn is_over<O: Order>(old: Mark, new: Mark, order: &O) -> bool {
    if order.is_settled(old) {
        return true;
    }
    if old.kind() == Touching::Write {
        return new.kind().is_strong() && !order.rules().has(RaceRule::PlainBehindStrong);
    }
    old.is_covered_by(new) && (order.is_same_thread(old) || order.is_before(old))
}

/// Whether the pair of readers says more with a third one in it: the one it replaces.
#[inline(always)]
pub(super) fn further<O: Order>(pair: [Mark; 2], third: Mark, order: &O) -> Option<usize> {
    let now = order.distance(pair[0], pair[1]);
    if now == 3 {
        return None;
    }
    [(1, 0), (0, 1)]
        .into_iter()
        .find_map(|(out, kept)| (order.distance(pair[kept], third) > now).then_some(out))
}

/// Drops one of the two accesses of one kind that stand closest together.
fn drop_one<O: Order>(marks: &mut Vec<Mark>, order: &O) {
    let mut closest = (4, 0);
    for (at, mark) in marks.iter().enumerate().skip(1) {
        for other in &marks[..at] {
            if mark.kind() == other.kind() && mark.kind() != Touching::Write {
                let distance = order.distance(*mark, *other);
                if distance < closest.0 {
                    closest = (distance, at);
                }
            }
        }
    }
    if closest.0 < 4 {
        marks.remove(closest.1);
    }
}
