//! The largest of many reasons.

use std::collections::HashMap;
use std::hash::Hash;

use super::explanation::LeftOut;

/// Reasons that are told apart. Of more, those stay that cost most so far.
const MAX_REASONS: usize = 1 << 14;

/// How often something cost time, how much, and the case that cost most.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cost<C> {
    pub(super) ns: u64,
    pub(super) times: u64,
    pub(super) longest_ns: u64,
    /// What is known of the longest.
    pub(super) longest: C,
}

/// What follows the first few of sorted reasons, which are left.
pub(super) fn cut<K, C>(sorted: &mut Vec<(K, Cost<C>)>, count: usize) -> LeftOut {
    let rest = sorted.split_off(count.min(sorted.len()));
    LeftOut {
        count: rest.len() as u64,
        ns: rest.iter().fold(0, |sum: u64, (_, cost)| sum.saturating_add(cost.ns)),
    }
}

/// Time by reason.
pub(super) struct Ranking<K, C> {
    costs: HashMap<K, Cost<C>>,
}

impl<K, C> Default for Ranking<K, C> {
    fn default() -> Self {
        Self { costs: HashMap::new() }
    }
}

impl<K: Hash + Eq + Ord + Copy, C: Copy> Ranking<K, C> {
    /// A reason cost so much time once.
    pub(super) fn add(&mut self, reason: K, ns: u64, case: C) {
        if ns == 0 {
            return;
        }
        if self.costs.len() >= MAX_REASONS && !self.costs.contains_key(&reason) {
            let kept = std::mem::take(self).largest(MAX_REASONS / 2);
            self.costs.extend(kept);
        }
        let cost = self.costs.entry(reason).or_insert(Cost { ns: 0, times: 0, longest_ns: 0, longest: case });
        cost.ns = cost.ns.saturating_add(ns);
        cost.times += 1;
        if ns > cost.longest_ns {
            (cost.longest_ns, cost.longest) = (ns, case);
        }
    }

    /// The longest case of each reason, to be completed.
    pub(super) fn cases_mut(&mut self) -> impl Iterator<Item = &mut C> {
        self.costs.values_mut().map(|cost| &mut cost.longest)
    }

    /// The reasons that cost most, in the same order for the same recording.
    pub(super) fn largest(self, count: usize) -> Vec<(K, Cost<C>)> {
        let mut all = self.sorted();
        all.truncate(count);
        all
    }

    /// All reasons, those that cost most first, in the same order for the same recording.
    pub(super) fn sorted(self) -> Vec<(K, Cost<C>)> {
        let mut all: Vec<_> = self.costs.into_iter().collect();
        all.sort_by(|(a, x), (b, y)| y.ns.cmp(&x.ns).then_with(|| a.cmp(b)));
        all
    }
}
