//! The happens-before relation of the threads of one block, as vector clocks.
//!
//! Each warp counts its synchronisations; an access is stamped with that time and its lane. What a thread is ordered behind has three
//! layers, so that the usual case costs nothing: what the whole block knows since its last barrier, what all lanes of a warp know of each
//! other, and what a single lane knows beyond that from barriers of some threads and from places it synchronised at.

use std::sync::{Arc, OnceLock};

use super::block_knowledge::Base;
use super::fence_snapshot::{Fenced, Gathered, LaneSync, Snapshot};
use super::last_poll::LastPoll;
use super::race_rule::{RaceRule, Rules};
use super::sync_location::{Acquired, Party, Released};
use super::vector_clock::{Clock, Time, joined, joined_options};
use super::warp_epochs::{EpochNumbers, WarpEpochs};
use crate::exec::lowered_code::Strength;
use crate::exec::warp_register::{LANES, each};

/// Times of a warp that a mark in shared memory can hold, as a shift.
pub(super) const TIME_BITS: u32 = 27;
pub(super) const LAST_TIME: Time = (1 << TIME_BITS) - 1;

/// What the lanes of one warp know.
pub(super) struct WarpClock {
    /// The lanes that have not exited.
    live: u32,
    now: Time,
    /// The number of the present time in the launch, once it is needed.
    epoch: u32,
    /// All lanes are ordered behind all accesses of the warp up to this time.
    all: Time,
    /// Further order between pairs of lanes.
    pub(super) pairs: Option<Box<[[Time; LANES]; LANES]>>,
    /// What single lanes know of other warps.
    pub(super) known: Option<Box<[Option<Arc<Clock>>; LANES]>>,
    pub(super) sync: Option<Box<[LaneSync; LANES]>>,
    /// What lanes knew before they last read a place that they may read again, for the lanes of `polling`.
    polls: Option<Box<[Option<LastPoll>; LANES]>>,
    polling: u32,
}

/// The clocks of a block.
pub(crate) struct Clocks {
    /// The number of its first warp in the grid.
    first: u32,
    block: u64,
    /// The number of its cluster, if the launch has some.
    pub(crate) cluster: Option<u64>,
    lockstep: bool,
    pub(super) rules: Rules,
    pub(super) base: Arc<Base>,
    pub(super) warps: Vec<WarpClock>,
    /// How every thread takes part in synchronisation through memory, unless its warp says otherwise.
    pub(super) shared: LaneSync,
    /// What threads brought that arrived at a barrier and did not wait, by barrier.
    early: Vec<(usize, Gathered)>,
}

impl Clocks {
    /// Clocks of a block that has not started.
    pub(crate) fn new(lockstep: bool, rules: Rules) -> Self {
        Self {
            first: 0,
            block: 0,
            cluster: None,
            lockstep: lockstep && rules.has(RaceRule::Lockstep),
            rules,
            base: Arc::default(),
            warps: Vec::new(),
            shared: LaneSync::default(),
            early: Vec::new(),
        }
    }

    /// Starts a block with these lanes in its warps.
    pub(crate) fn start(&mut self, block: u64, first: u32, lanes: &[u32]) {
        (self.block, self.first, self.cluster) = (block, first, None);
        self.shared = LaneSync::default();
        self.early.clear();
        self.warps.clear();
        self.warps.extend(lanes.iter().map(|live| WarpClock {
            live: *live,
            now: 1,
            epoch: 0,
            all: 0,
            pairs: None,
            known: None,
            sync: None,
            polls: None,
            polling: 0,
        }));
        if let Some(base) = Arc::get_mut(&mut self.base) {
            base.own.clear();
            base.own.resize(lanes.len(), 0);
            (base.first, base.clock) = (first, OnceLock::new());
            if !base.foreign.is_empty() {
                base.foreign = Arc::default();
            }
        } else {
            self.base = Arc::new(Base { own: vec![0; lanes.len()], first, ..Base::default() });
        }
    }

    /// The number of a warp of the block in the grid.
    pub(crate) fn number(&self, warp: usize) -> u32 {
        self.first + warp as u32
    }

    /// The place of a warp of the grid in this block, if it belongs to it.
    #[inline(always)]
    pub(crate) fn own_warp(&self, number: u32) -> Option<usize> {
        let at = number.wrapping_sub(self.first) as usize;
        (at < self.warps.len()).then_some(at)
    }

    /// The present of a warp, as marks in shared memory hold it.
    #[inline(always)]
    pub(super) fn local_interval(&self, warp: usize) -> u32 {
        (warp as u32) << TIME_BITS | self.warps[warp].now
    }

    /// The present of a warp, as marks in global memory hold it.
    #[inline(always)]
    pub(super) fn epoch(&mut self, warp: usize, all: &WarpEpochs, own: &mut EpochNumbers) -> Option<u32> {
        let number = self.first + warp as u32;
        let clock = &mut self.warps[warp];
        if clock.epoch == 0 {
            clock.epoch = all.add(own, number, clock.now)?;
        }
        Some(clock.epoch)
    }

    /// Whether an access of a warp of this block is ordered before what a lane does now.
    #[inline(always)]
    pub(super) fn is_before(&self, from: usize, lane: usize, time: Time, warp: usize, here: usize) -> bool {
        let clock = &self.warps[warp];
        if from == warp {
            return lane == here
                || time <= clock.all
                || self.lockstep
                || !self.rules.has(RaceRule::Lanes)
                || clock.pairs.as_ref().is_some_and(|pairs| time <= pairs[here][lane]);
        }
        time <= self.base.own[from] || self.knows(self.first + from as u32, lane, time, warp, here)
    }

    /// The same for a warp of another block.
    pub(super) fn is_foreign_before(
        &self,
        from: u32,
        lane: usize,
        time: Time,
        warp: usize,
        here: usize,
    ) -> bool {
        self.base.foreign.covers(from, lane, time)
            || self.knows(from, lane, time, warp, here)
            || !self.rules.has(RaceRule::Blocks) && self.base.own[warp] != 0
    }

    #[inline(always)]
    fn knows(&self, from: u32, lane: usize, time: Time, warp: usize, here: usize) -> bool {
        let known = self.warps[warp].known.as_ref().and_then(|known| known[here].as_ref());
        known.is_some_and(|known| known.covers(from, lane, time))
    }

    /// Whether what the lanes of a warp are ordered behind differs in nothing but what each did itself.
    #[inline(always)]
    pub(super) fn is_alike(&self, warp: usize) -> bool {
        let clock = &self.warps[warp];
        clock.pairs.is_none() && clock.known.is_none() && self.base.foreign.is_empty()
    }

    /// Threads of a warp have exited.
    pub(crate) fn leave(&mut self, warp: usize, live: u32) {
        if let Some(clock) = self.warps.get_mut(warp) {
            clock.live = live;
        }
    }

    /// Lanes of a warp met.
    pub(crate) fn meet_lanes(&mut self, warp: usize, members: u32) {
        self.end_polls(warp, members);
        if !self.rules.has(RaceRule::WarpBarrier) {
            return;
        }
        let clock = &mut self.warps[warp];
        if members & clock.live == clock.live && clock.known.is_none() && clock.sync.is_none() {
            clock.all = clock.now;
            clock.pairs = None;
            self.tick(warp);
        } else {
            self.meet_some(&[(warp, members)], None);
        }
    }

    /// Threads arrived at a barrier and go on at once.
    pub(crate) fn arrive(&mut self, barrier: usize, warp: usize, lanes: u32) {
        self.end_polls(warp, lanes);
        if !self.rules.has(RaceRule::Arrival) {
            return;
        }
        let mut gathered = Gathered::default();
        self.gather(warp, lanes, &mut gathered);
        match self.early.iter_mut().find(|(number, _)| *number == barrier) {
            Some((_, earlier)) => earlier.join(&gathered),
            None => self.early.push((barrier, gathered)),
        }
        self.tick(warp);
    }

    /// A barrier is complete: these lanes of each warp waited at it. `whole` if every thread of the block did.
    pub(crate) fn meet(&mut self, barrier: usize, waiting: &[u32], whole: bool) {
        let early = self.early.iter().position(|(number, _)| *number == barrier);
        let early = early.map(|at| self.early.swap_remove(at).1);
        waiting.iter().enumerate().for_each(|(warp, lanes)| self.end_polls(warp, *lanes));
        let rule = if whole { RaceRule::BlockBarrier } else { RaceRule::PartialBarrier };
        if !self.rules.has(rule) {
            return;
        }
        let groups = || waiting.iter().copied().enumerate().filter(|(_, mask)| *mask != 0);
        if !whole {
            self.meet_some(&groups().collect::<Vec<_>>(), early);
            return;
        }
        let plain = |clock: &WarpClock| clock.known.is_none() && clock.sync.is_none();
        if early.is_some() || !self.warps.iter().all(plain) {
            let mut gathered = early.unwrap_or_default();
            groups().for_each(|(warp, lanes)| self.gather(warp, lanes, &mut gathered));
            self.share(&gathered);
        }
        let base = Arc::make_mut(&mut self.base);
        base.clock = OnceLock::new();
        for (clock, time) in self.warps.iter_mut().zip(&mut base.own) {
            (*time, clock.all, clock.epoch) = (clock.now, clock.now, 0);
            (clock.pairs, clock.known, clock.sync) = (None, None, None);
            clock.now = (clock.now + 1).min(LAST_TIME);
        }
    }

    /// What every thread of the block knows from now on.
    fn share(&mut self, gathered: &Gathered) {
        let foreign = gathered.clock.outside(self.first, self.warps.len() as u32);
        if !foreign.is_empty() {
            let base = Arc::make_mut(&mut self.base);
            base.foreign = joined(&base.foreign, &Arc::new(foreign));
        }
        if let Some(sync) = gathered.sync() {
            let mut all = Gathered::default();
            all.add_sync(&self.shared);
            all.add_sync(&sync);
            self.shared = all.sync().unwrap_or_default();
        }
    }

    /// Lanes executed a fence.
    pub(crate) fn fence(&mut self, warp: usize, lanes: u32, wide: bool, acquire: bool, release: bool) {
        if acquire {
            self.acquire_pending(warp, lanes, wide);
        }
        let wide = wide || !sync_scope(self.rules);
        if release && self.rules.has(RaceRule::ReleaseFence) {
            each(lanes, |lane| {
                let fenced = Fenced::of(self.snapshot(warp, lane));
                let sync = &mut self.sync(warp)[lane];
                if wide {
                    sync.wide = Some(fenced.clone());
                }
                sync.narrow = Some(fenced);
            });
        }
        self.tick(warp);
    }

    /// What a strong write of a lane releases; `at_once` if the write itself does.
    pub(crate) fn released(&self, warp: usize, lane: usize, at_once: bool, wide: bool) -> Released {
        let wide = wide || !sync_scope(self.rules);
        if at_once && self.rules.has(RaceRule::Release) || !self.rules.has(RaceRule::Relaxed) {
            let clock = Arc::new(self.snapshot(warp, lane).clock());
            return Released { narrow: Some(Arc::clone(&clock)), wide: wide.then_some(clock), at_once };
        }
        let own = self.warps[warp].sync.as_ref().map(|sync| &sync[lane]);
        let narrow = own.and_then(|sync| sync.narrow.as_ref()).or(self.shared.narrow.as_ref());
        let broad = own.and_then(|sync| sync.wide.as_ref()).or(self.shared.wide.as_ref());
        let (narrow, broad) = (narrow.map(Fenced::clock), broad.filter(|_| wide).map(Fenced::clock));
        Released { narrow, wide: broad, at_once: false }
    }

    /// A lane executes a strong read, the same one as before if `place` (instruction and address) is the same and the lane made no other access in
    /// between: then it waits, and what the earlier read found is dropped. A thread that had been slower would not have seen it.
    pub(crate) fn poll(&mut self, warp: usize, lane: usize, place: (u32, u64), finds: bool) {
        if !self.rules.has(RaceRule::LastPoll) {
            return;
        }
        let clock = &mut self.warps[warp];
        let before = clock.polls.as_ref().and_then(|polls| polls[lane].as_ref());
        if let Some(before) = before.filter(|poll| clock.polling >> lane & 1 != 0 && poll.place == place) {
            before.restore(lane, &mut clock.known, &mut clock.pairs, &mut clock.sync);
            return;
        }
        clock.polling &= !(1 << lane);
        if finds {
            let poll = LastPoll::new(place, lane, &clock.known, &clock.pairs, &clock.sync);
            clock.polls.get_or_insert_with(|| Box::new([const { None }; LANES]))[lane] = Some(poll);
            clock.polling |= 1 << lane;
        }
    }

    /// Lanes do something else than to read again: what they found stays.
    #[inline(always)]
    pub(crate) fn end_polls(&mut self, warp: usize, lanes: u32) {
        self.warps[warp].polling &= !lanes;
    }

    /// A strong read of a lane found something released; `at_once` if the read itself acquires.
    pub(crate) fn acquired(&mut self, warp: usize, lane: usize, found: &Acquired, at_once: bool) {
        if found.is_empty() {
            return;
        }
        if at_once && self.rules.has(RaceRule::Acquire) || !self.rules.has(RaceRule::Relaxed) {
            for clock in [&found.narrow, &found.wide].into_iter().flatten() {
                self.acquire(warp, lane, clock);
            }
            return;
        }
        let sync = &mut self.sync(warp)[lane];
        sync.pending = joined_options(sync.pending.as_ref(), found.narrow.as_ref());
        sync.pending_wide = joined_options(sync.pending_wide.as_ref(), found.wide.as_ref());
    }

    /// The thread of an access.
    pub(crate) fn party(&self, warp: usize, lane: usize, strength: Strength) -> Party {
        let thread = u64::from(self.number(warp)) * LANES as u64 + lane as u64;
        let wide = strength.wide;
        Party { block: self.block, thread, wide, cluster: self.cluster.filter(|_| wide || strength.cluster) }
    }

    /// The present time of a warp.
    pub(crate) fn now(&self, warp: usize) -> Time {
        self.warps[warp].now
    }

    /// A warp goes on to its next time.
    pub(crate) fn tick(&mut self, warp: usize) {
        let clock = &mut self.warps[warp];
        clock.now = (clock.now + 1).min(LAST_TIME);
        clock.epoch = 0;
    }

    fn acquire_pending(&mut self, warp: usize, lanes: u32, wide: bool) {
        if !self.rules.has(RaceRule::AcquireFence) {
            return;
        }
        let wide = wide || !sync_scope(self.rules);
        let shared = [self.shared.pending.clone(), self.shared.pending_wide.clone().filter(|_| wide)];
        each(lanes, |lane| {
            for clock in shared.iter().flatten() {
                self.acquire(warp, lane, clock);
            }
            let Some(sync) = self.warps[warp].sync.as_mut().map(|sync| &mut sync[lane]) else { return };
            let narrow = sync.pending.take();
            let broad = if wide { sync.pending_wide.take() } else { None };
            for clock in [narrow, broad].into_iter().flatten() {
                self.acquire(warp, lane, &clock);
            }
        });
    }

    fn acquire(&mut self, warp: usize, lane: usize, found: &Arc<Clock>) {
        let number = self.number(warp);
        let clock = &mut self.warps[warp];
        if let Some((all, lanes)) = found.of_warp(number) {
            let pairs = clock.pairs.get_or_insert_with(|| Box::new([[0; LANES]; LANES]));
            for (at, time) in pairs[lane].iter_mut().enumerate() {
                *time = (*time).max(all).max(lanes.map_or(0, |lanes| lanes[at]));
            }
        }
        let known = clock.known.get_or_insert_with(Default::default);
        known[lane] = joined_options(known[lane].as_ref(), Some(found));
    }

    pub(super) fn sync(&mut self, warp: usize) -> &mut [LaneSync; LANES] {
        self.warps[warp].sync.get_or_insert_with(Default::default)
    }

    /// What a lane is ordered behind, itself included.
    pub(super) fn snapshot(&self, warp: usize, lane: usize) -> Snapshot {
        let clock = &self.warps[warp];
        Snapshot {
            base: Arc::clone(&self.base),
            known: clock.known.as_ref().and_then(|known| known[lane].clone()),
            warp: self.number(warp),
            all: if self.lockstep { clock.now } else { clock.all },
            lane,
            now: clock.now,
            row: clock.pairs.as_ref().map(|pairs| Box::new(pairs[lane])),
        }
    }

    /// Lanes of some warps meet: each goes on behind all.
    fn meet_some(&mut self, groups: &[(usize, u32)], early: Option<Gathered>) {
        let mut gathered = early.unwrap_or_default();
        for (warp, lanes) in groups {
            self.gather(*warp, *lanes, &mut gathered);
        }
        let others = match groups {
            [(warp, _)] => gathered.clock.outside(self.number(*warp), 1),
            _ => gathered.clock.clone(),
        };
        let others = Some(Arc::new(others)).filter(|clock| !clock.is_empty());
        for (warp, lanes) in groups {
            self.receive(*warp, *lanes, &gathered, others.as_ref());
        }
        groups.iter().for_each(|(warp, _)| self.tick(*warp));
    }

    /// What lanes of a warp bring to a meeting, as one clock.
    pub(super) fn gathered(&self, warp: usize, lanes: u32) -> Clock {
        let mut gathered = Gathered::default();
        self.gather(warp, lanes, &mut gathered);
        gathered.clock
    }

    /// What lanes of a warp bring to a meeting.
    fn gather(&self, warp: usize, lanes: u32, into: &mut Gathered) {
        let (clock, number) = (&self.warps[warp], self.number(warp));
        if lanes & clock.live == clock.live {
            into.clock.add(number, clock.now, None);
        } else {
            into.clock.add(number, clock.all, None);
            into.clock.add_lanes(number, lanes, clock.now);
            if let Some(pairs) = &clock.pairs {
                each(lanes, |lane| into.clock.add(number, 0, Some(&pairs[lane])));
            }
        }
        let through = self.rules.has(RaceRule::FenceThroughBarrier);
        let mut last: Option<&Arc<Clock>> = None;
        for lane in (0..LANES).filter(|lane| lanes >> lane & 1 != 0) {
            let known = clock.known.as_ref().and_then(|known| known[lane].as_ref());
            if let Some(known) = known.filter(|known| !last.is_some_and(|last| Arc::ptr_eq(last, known))) {
                into.clock.join(known);
                last = Some(known);
            }
            if let Some(sync) = clock.sync.as_ref().filter(|_| through) {
                into.add_sync(&sync[lane]);
            }
        }
    }

    /// Lanes of a warp go on behind all that was brought.
    fn receive(&mut self, warp: usize, lanes: u32, gathered: &Gathered, others: Option<&Arc<Clock>>) {
        let number = self.number(warp);
        let clock = &mut self.warps[warp];
        if lanes & clock.live == clock.live {
            clock.all = clock.now;
            clock.pairs = None;
        } else if let Some((all, times)) = gathered.clock.of_warp(number) {
            let pairs = clock.pairs.get_or_insert_with(|| Box::new([[0; LANES]; LANES]));
            each(lanes, |lane| {
                for (at, time) in pairs[lane].iter_mut().enumerate() {
                    *time = (*time).max(all).max(times.map_or(0, |times| times[at]));
                }
            });
        }
        if let Some(others) = others {
            let known = clock.known.get_or_insert_with(Default::default);
            // Most lanes know the same, and then know the same again.
            let mut last: Option<(Arc<Clock>, Arc<Clock>)> = None;
            each(lanes, |lane| {
                let next = match (&known[lane], &last) {
                    (None, _) => Arc::clone(others),
                    (Some(before), Some((same, after))) if Arc::ptr_eq(before, same) => Arc::clone(after),
                    (Some(before), _) => {
                        let after = joined(before, others);
                        last = Some((Arc::clone(before), Arc::clone(&after)));
                        after
                    }
                };
                known[lane] = Some(next);
            });
        }
        if let Some(sync) = gathered.sync() {
            let all = clock.sync.get_or_insert_with(Default::default);
            each(lanes, |lane| all[lane] = sync.clone());
        }
    }
}

fn sync_scope(rules: Rules) -> bool {
    rules.has(RaceRule::OrderScope)
}
