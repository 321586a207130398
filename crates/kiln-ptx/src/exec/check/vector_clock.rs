//! A vector clock over the warps of a grid: up to which time of each warp, and of each of its lanes, something is ordered behind.
//!
//! Most warps are known as a whole. Where lanes differ, each has its own time.

use std::sync::Arc;

use crate::exec::warp_register::{LANES, each};

/// A time of a warp; every access is stamped with one. Zero is before everything.
pub(crate) type Time = u32;

/// What is known of one warp.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    warp: u32,
    /// All its lanes up to this time.
    all: Time,
    /// Single lanes further than that.
    lanes: Option<Arc<[Time; LANES]>>,
}

/// A clock; warps that are not named are not known at all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Clock {
    /// By rising warp.
    entries: Vec<Entry>,
}

impl Clock {
    /// A clock of warps that are known as a whole, by rising number.
    pub(crate) fn of_warps(warps: impl Iterator<Item = (u32, Time)>) -> Self {
        let entries = warps.filter(|(_, all)| *all != 0).map(|(warp, all)| Entry { warp, all, lanes: None });
        Self { entries: entries.collect() }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Whether an access of a lane at a time lies behind.
    #[inline]
    pub(crate) fn covers(&self, warp: u32, lane: usize, time: Time) -> bool {
        self.find(warp).is_some_and(|entry| {
            time <= entry.all || entry.lanes.as_ref().is_some_and(|lanes| time <= lanes[lane & (LANES - 1)])
        })
    }

    /// What is known of one warp: all lanes, and single ones.
    pub(crate) fn of_warp(&self, warp: u32) -> Option<(Time, Option<&[Time; LANES]>)> {
        self.find(warp).map(|entry| (entry.all, entry.lanes.as_deref()))
    }

    /// Adds what is known of one warp.
    pub(crate) fn add(&mut self, warp: u32, all: Time, lanes: Option<&[Time; LANES]>) {
        let entry = Entry { warp, all, lanes: lanes.map(|lanes| Arc::new(*lanes)) };
        match self.entries.binary_search_by_key(&warp, |entry| entry.warp) {
            Ok(at) => self.entries[at].join(&entry),
            Err(at) => self.entries.insert(at, entry),
        }
    }

    /// Adds some lanes of a warp up to a time.
    pub(crate) fn add_lanes(&mut self, warp: u32, mask: u32, time: Time) {
        let mut lanes = [0; LANES];
        each(mask, |lane| lanes[lane] = time);
        self.add(warp, 0, Some(&lanes));
    }

    /// Joins another clock in.
    pub(crate) fn join(&mut self, other: &Self) {
        if self.entries.is_empty() {
            self.entries.clone_from(&other.entries);
            return;
        }
        let mut joined = Vec::with_capacity(self.entries.len().max(other.entries.len()));
        let (mut mine, mut theirs) = (self.entries.drain(..).peekable(), other.entries.iter().peekable());
        loop {
            match (mine.peek(), theirs.peek()) {
                (Some(a), Some(b)) if a.warp == b.warp => {
                    if let (Some(mut a), Some(b)) = (mine.next(), theirs.next()) {
                        a.join(b);
                        joined.push(a);
                    }
                }
                (Some(a), Some(b)) if a.warp < b.warp => joined.extend(mine.next()),
                (_, Some(_)) => joined.extend(theirs.next().cloned()),
                (Some(_), None) => joined.extend(mine.next()),
                (None, None) => break,
            }
        }
        drop(mine);
        self.entries = joined;
    }

    /// Whether everything the other covers is covered.
    pub(crate) fn includes(&self, other: &Self) -> bool {
        let mut mine = self.entries.iter();
        other.entries.iter().all(|theirs| {
            mine.by_ref().find(|entry| entry.warp >= theirs.warp).is_some_and(|entry| {
                // An entry is used once: numbers rise in both.
                entry.warp == theirs.warp && entry.includes(theirs)
            })
        })
    }

    /// Without the warps of a range.
    pub(crate) fn outside(&self, first: u32, count: u32) -> Self {
        let keep = |entry: &&Entry| entry.warp < first || entry.warp - first >= count;
        Self { entries: self.entries.iter().filter(keep).cloned().collect() }
    }

    fn find(&self, warp: u32) -> Option<&Entry> {
        let at = self.entries.binary_search_by_key(&warp, |entry| entry.warp).ok()?;
        self.entries.get(at)
    }
}

/// The join of two clocks, one of them if it includes the other.
pub(crate) fn joined(a: &Arc<Clock>, b: &Arc<Clock>) -> Arc<Clock> {
    if Arc::ptr_eq(a, b) || a.includes(b) {
        return Arc::clone(a);
    }
    if b.includes(a) {
        return Arc::clone(b);
    }
    let mut clock = Clock::clone(a);
    clock.join(b);
    Arc::new(clock)
}

/// The same where either may be missing.
pub(crate) fn joined_options(a: Option<&Arc<Clock>>, b: Option<&Arc<Clock>>) -> Option<Arc<Clock>> {
    match (a, b) {
        (Some(a), Some(b)) => Some(joined(a, b)),
        (one, other) => one.or(other).cloned(),
    }
}

impl Entry {
    fn join(&mut self, other: &Self) {
        self.all = self.all.max(other.all);
        let Some(theirs) = &other.lanes else { return };
        match &mut self.lanes {
            Some(mine) if Arc::ptr_eq(mine, theirs) => {}
            Some(mine) => {
                let mine = Arc::make_mut(mine);
                mine.iter_mut().zip(theirs.iter()).for_each(|(time, other)| *time = (*time).max(*other));
            }
            none => *none = Some(Arc::clone(theirs)),
        }
    }

    fn includes(&self, other: &Self) -> bool {
        let known = |lane: usize| self.all.max(self.lanes.as_ref().map_or(0, |lanes| lanes[lane]));
        match &other.lanes {
            None if self.lanes.is_none() => other.all <= self.all,
            lanes => {
                (0..LANES).all(|lane| other.all.max(lanes.as_ref().map_or(0, |l| l[lane])) <= known(lane))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_join_covers_what_either_covers() {
        let mut a = Clock::of_warps([(1, 5), (4, 2)].into_iter());
        let mut b = Clock::of_warps([(0, 1), (4, 7)].into_iter());
        b.add_lanes(1, 0b100, 9);
        assert!(!a.includes(&b) && !b.includes(&a));
        a.join(&b);
        assert!(a.includes(&b));
        assert!(a.covers(0, 3, 1) && a.covers(4, 0, 7) && !a.covers(4, 0, 8));
        assert!(a.covers(1, 2, 9) && a.covers(1, 3, 5) && !a.covers(1, 3, 6) && !a.covers(2, 0, 1));
        assert!(!a.outside(4, 1).covers(4, 0, 1));
    }
}
