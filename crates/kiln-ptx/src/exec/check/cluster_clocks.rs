//! The order that the barrier of a cluster makes.

use std::sync::Arc;

use super::happens_before::Clocks;
use super::race_rule::RaceRule;
use super::vector_clock::{Clock, joined, joined_options};
use crate::exec::warp_register::{LANES, each};

impl Clocks {
    /// What lanes of a warp release that arrive: all that came before, or, if the arrival is relaxed, what came before their last fence.
    pub(crate) fn bring(&mut self, warp: usize, lanes: u32, orders: bool) -> Option<Arc<Clock>> {
        self.end_polls(warp, lanes);
        if !self.rules.has(RaceRule::ClusterBarrier) {
            return None;
        }
        let brought = match orders {
            true => {
                let mut clock = Clock::clone(self.base.clock());
                clock.join(&self.gathered(warp, lanes));
                Some(Arc::new(clock))
            }
            false => (0..LANES).filter(|lane| lanes >> lane & 1 != 0).fold(None, |all, lane| {
                let fenced = self.released(warp, lane, false, true).wide;
                joined_options(all.as_ref(), fenced.as_ref())
            }),
        };
        self.tick(warp);
        brought
    }

    /// Lanes of a warp go on behind what was brought.
    pub(crate) fn take_over(&mut self, warp: usize, lanes: u32, brought: &Arc<Clock>) {
        self.end_polls(warp, lanes);
        let number = self.number(warp);
        let clock = &mut self.warps[warp];
        if let Some((all, times)) = brought.of_warp(number) {
            let pairs = clock.pairs.get_or_insert_with(|| Box::new([[0; LANES]; LANES]));
            each(lanes, |lane| {
                for (at, time) in pairs[lane].iter_mut().enumerate() {
                    *time = (*time).max(all).max(times.map_or(0, |times| times[at]));
                }
            });
        }
        let known = clock.known.get_or_insert_with(Default::default);
        // Most lanes know the same, and then know the same again.
        let mut last: Option<(Arc<Clock>, Arc<Clock>)> = None;
        each(lanes, |lane| {
            let next = match (&known[lane], &last) {
                (None, _) => Arc::clone(brought),
                (Some(before), Some((same, after))) if Arc::ptr_eq(before, same) => Arc::clone(after),
                (Some(before), _) => {
                    let after = joined(before, brought);
                    last = Some((Arc::clone(before), Arc::clone(&after)));
                    after
                }
            };
            known[lane] = Some(next);
        });
    }
}
