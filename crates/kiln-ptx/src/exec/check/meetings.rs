//! Lanes of a warp that met at a shuffle, a vote or a match.
//!
//! These order no memory. But a lane that has come to one has made its earlier accesses to `mbarrier` objects: that is all which the end of
//! an object needs, and libraries rely on it where one lane of a warp ends an object for all.

use super::races::BlockRaces;
use super::vector_clock::Time;
use crate::exec::warp_register::LANES;

/// How many are remembered for each warp.
const REMEMBERED: usize = 8;

/// The last ones of each warp: when, and which lanes.
#[derive(Default)]
pub(crate) struct Meetings {
    warps: Vec<Vec<(Time, u32)>>,
}

impl Meetings {
    fn add(&mut self, warp: usize, time: Time, lanes: u32) {
        if self.warps.len() <= warp {
            self.warps.resize_with(warp + 1, Vec::new);
        }
        let known = &mut self.warps[warp];
        if known.len() == REMEMBERED {
            known.remove(0);
        }
        known.push((time, lanes));
    }

    /// Those of a lane since a time.
    fn since(&self, warp: usize, lane: usize, time: Time) -> impl Iterator<Item = (Time, u32)> {
        let known = self.warps.get(warp).map_or(&[][..], Vec::as_slice);
        known.iter().copied().filter(move |(met, lanes)| *met >= time && lanes >> lane & 1 != 0)
    }
}

impl BlockRaces<'_> {
    /// Lanes of a warp met without an order of memory.
    pub(crate) fn note_meeting(&mut self, warp: usize, lanes: u32) {
        self.meetings.add(warp, self.clocks.now(warp), lanes);
        self.clocks.tick(warp);
    }

    /// Whether what a thread (warp and lane) did at a time is over before what another thread does now, because memory is ordered or because
    /// lanes have met since.
    pub(crate) fn is_over(
        &self,
        (warp, lane): (usize, usize),
        time: Time,
        (to_warp, to_lane): (usize, usize),
    ) -> bool {
        let is_before = |lane: usize, time: Time| self.clocks.is_before(warp, lane, time, to_warp, to_lane);
        let is_passed_on = |(met, lanes): (Time, u32)| {
            (0..LANES).any(|other| lanes >> other & 1 != 0 && is_before(other, met))
        };
        is_before(lane, time) || self.meetings.since(warp, lane, time).any(is_passed_on)
    }
}
