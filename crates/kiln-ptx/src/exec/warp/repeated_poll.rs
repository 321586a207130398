//! Strong reads that a lane group repeats, as a loop does that waits for another thread.
//!
//! A lane group that comes back to a strong read with the same registers, and only computed and read in between, does the same again until memory changes. The
//! search for [endless loops](super::endless_loop) finds that in any loop, after some hundred instructions. Here it is looked for where threads wait, and
//! found at the third read, so that a wait costs a few instructions before others run.

use super::Warp;
use super::kept_state::KeptState;
use super::lane_group::State;
use crate::exec::block::Cta;
use crate::exec::memory::generic_address::Place;
use crate::exec::warp_register::{Column, LANES, first_lane};

/// The most reads that are not looked at behind one that was not repeated.
const MOST_SKIPPED: u32 = 63;
/// The most words that are told of one warp.
const MOST_WORDS: usize = 2 * LANES;

/// A strong read, or an atomic that changed nothing.
pub(super) struct Poll<'a> {
    pub(super) place: Place,
    pub(super) addresses: &'a Column,
    pub(super) lanes: u32,
    /// The bytes of one part, and how many parts each lane reads.
    pub(super) bytes: u32,
    pub(super) parts: usize,
}

/// The last strong read of a warp, and whether it is repeated.
#[derive(Default)]
pub(super) struct RepeatedPoll {
    /// Its instruction, its lanes, and the address of the first of them.
    site: Option<(u32, u32, u64)>,
    /// The registers behind an earlier execution of it, if they are kept.
    state: KeptState,
    is_kept: bool,
    /// How often memory had been changed then, and been read.
    changes: u64,
    reads: u32,
    /// Executions that are not looked at, and how many are left of them: registers differed.
    skipped: u32,
    left: u32,
    /// How often memory had been changed when it was last found to be repeated, and the words it reads. None if not these alone decide how the loop goes on.
    found: Option<u64>,
    words: Option<Vec<(u64, u32)>>,
}

impl RepeatedPoll {
    /// For a warp that starts; what was allocated stays.
    pub(super) fn restart(&mut self) {
        (self.site, self.is_kept, self.found, self.words) = (None, false, None, None);
    }
}

impl Warp {
    /// Whether others run behind a strong read that was just made: it is repeated, or lanes failed to take a lock while `others` of the warp could run.
    pub(super) fn lets_others_run(
        &mut self,
        cta: &Cta<'_>,
        at: usize,
        read: &Poll<'_>,
        others: bool,
    ) -> bool {
        self.repeats_poll(cta, at, read) || others && self.lets_lanes_run(cta, at)
    }

    /// Looks at a strong read that was just made: whether the lane group repeats it, with memory unchanged.
    fn repeats_poll(&mut self, cta: &Cta<'_>, at: usize, read: &Poll<'_>) -> bool {
        if !cta.looks_for_polls || cta.is_clustered() || !cta.mbarriers.is_empty() {
            return false;
        }
        let lane_group = self.lane_groups[at];
        let (poll, watch) = (&mut self.poll, &mut self.watch);
        let site = Some((lane_group.pc, lane_group.mask, read.addresses[first_lane(read.lanes)]));
        if std::mem::replace(&mut poll.site, site) != site {
            (poll.is_kept, poll.skipped, poll.left) = (false, 0, 0);
            return false;
        }
        if poll.left > 0 {
            poll.left -= 1;
            return false;
        }
        let changes = cta.all_changes();
        let is_same = poll.is_kept && poll.state.holds(&lane_group, &self.frames[lane_group.frame]);
        let was_changed = poll.changes != changes;
        let is_repeated = is_same && watch.is_intact && !was_changed;
        let is_alone = watch.read_count.wrapping_sub(poll.reads) == 1 && read.place == Place::Global;
        (poll.changes, poll.reads, watch.is_intact) = (changes, watch.read_count, true);
        if is_repeated {
            let count = read.lanes.count_ones() as usize * read.parts;
            poll.found = Some(changes);
            poll.words = (is_alone && count <= MOST_WORDS).then(|| read.words());
            self.lane_groups[at].repeats = Some(changes);
            if self.has_other_lanes(at) {
                self.pass_over(at);
            }
            return true;
        }
        if is_same {
            return false;
        }
        if poll.is_kept && !was_changed {
            // It counts its rounds, or the like.
            poll.skipped = (2 * poll.skipped + 1).min(MOST_SKIPPED);
            (poll.left, poll.is_kept) = (poll.skipped, false);
            return false;
        }
        poll.is_kept = true;
        self.frames[lane_group.frame].settle_all();
        self.poll.state.keep(&lane_group, &self.frames[lane_group.frame]);
        false
    }

    /// Adds the words of global memory that the warp reads again and again, if it repeats what it does; false if other things, too, let it go on.
    pub(crate) fn add_polled_words(&self, words: &mut Vec<(u64, u32)>) -> bool {
        let mut ready = self.lane_groups.iter().filter(|lane_group| lane_group.state == State::Ready);
        match (ready.next(), ready.next()) {
            (None, _) => true,
            (Some(one), None) if one.repeats.is_some() && one.repeats == self.poll.found => {
                words.extend(self.poll.words.iter().flatten());
                self.poll.words.is_some()
            }
            _ => false,
        }
    }
}

impl Poll<'_> {
    /// What it reads: addresses and bytes.
    fn words(&self) -> Vec<(u64, u32)> {
        let mut words = Vec::new();
        for lane in (0..LANES).filter(|lane| self.lanes >> lane & 1 != 0) {
            let parts = (0..self.parts as u64).map(|part| part * u64::from(self.bytes));
            let word = |offset| (self.addresses[lane].wrapping_add(offset), self.bytes);
            words.extend(parts.map(word).filter(|word| !words.contains(word)).collect::<Vec<_>>());
        }
        words
    }
}
