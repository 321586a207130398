//! What is remembered of one place: the last plain write, and the reads and strong accesses since.
//!
//! A plain write that races with none of them is ordered behind all of them, and they are forgotten. A read or a strong access is kept until
//! a later one covers it. Where threads are ordered only by barriers of whole warps and blocks, two readers that are as far apart as
//! possible say as much as all of them: of two blocks, at most one is ordered with a writer. Elsewhere up to [`CAPACITY`] are kept, and
//! when there are more, of those that stand closest together one is dropped. That can hide a race but never invents one.

use super::mark::{Mark, Touching};
use super::order::{Order, RaceCause, race};
use super::rule::RaceRule;

/// The most accesses kept of one place.
const CAPACITY: usize = 8;

/// An earlier access that races with a new one.
pub(super) type Raced = Option<(Mark, RaceCause)>;

/// Takes a new access in; the first remembered one it races with. `exact` keeps more than two readers.
pub(super) fn take<O: Order>(marks: &mut Vec<Mark>, new: Mark, order: &O, exact: bool) -> Raced {
    let raced = marks.iter().find_map(|old| race(*old, new, order).map(|cause| (*old, cause)));
    if new.kind() == Touching::Write {
        marks.clear();
        marks.push(new);
        return raced;
    }
    let limit = if exact { CAPACITY } else { 4 };
    if marks.len() == limit && marks.iter().any(|old| old.is_of_kind(new) && old.interval() == new.interval())
    {
        // Another lane of the warp stands for it. Places that a whole block reads come here often.
        return raced;
    }
    marks.retain(|old| !is_over(*old, new, order));
    marks.push(new);
    if marks.len() > limit {
        drop_one(marks, order);
    }
    raced
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
        marks.swap_remove(closest.1);
    }
}
