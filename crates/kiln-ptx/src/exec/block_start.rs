//! How a block starts: in the room of one that is done, if there is one, so that nothing is allocated and little is copied.

use std::cell::Cell;

use super::barrier::BarrierState;
use super::block::{Block, Cta, WarpExits};
use super::check::{BlockRaces, ValueRule};
use super::launch::Launch;
use super::mbarrier_table::MbarrierTable;
use super::memory::Shared;
use super::memory::generic_address::shared_window;
use super::outcome::Counters;
use super::path_tree::PathTree;
use super::random::Random;
use super::undefined::OriginNotes;
use super::warp::Warp;
use super::warp_register::{FULL, LANES, each};
use super::warpgroup_order::WarpgroupOrder;

impl<'l> Block<'l> {
    /// The block with a number; it takes over the room of one of the launch that is done.
    pub(crate) fn new(launch: &'l Launch<'l>, number: u64, done: Option<Self>) -> Self {
        let mut block = done.unwrap_or_else(|| {
            let cta = Cta::empty(launch);
            let warps: Vec<Warp> = (0..cta.existing.len()).map(|_| Warp::default()).collect();
            let held = vec![0; warps.len()];
            Self { cta, warps, random: None, held, order: Vec::new(), repeats_since: 0 }
        });
        block.cta.start(number);
        for (at, warp) in block.warps.iter_mut().enumerate() {
            warp.start(at, &block.cta);
        }
        let seed = launch.options.seed;
        block.random = (seed != 0).then(|| Random::new(seed ^ number.wrapping_mul(0x2545_f491_4f6c_dd1d)));
        block.held.fill(0);
        block
    }
}

impl<'l> Cta<'l> {
    /// The room of a block that has not started.
    fn empty(launch: &'l Launch<'l>) -> Box<Self> {
        let threads = launch.shape.threads();
        let lanes = |warp: u64| match threads - warp * LANES as u64 {
            rest if rest >= LANES as u64 => FULL,
            rest => (1 << rest) - 1,
        };
        let existing: Vec<u32> = (0..threads.div_ceil(LANES as u64)).map(lanes).collect();
        Box::new(Self {
            launch,
            index: [0; 3],
            number: 0,
            place_in_cluster: (0, 0),
            cluster: None,
            visited: None,
            shared: Shared::default(),
            shared_window: 0,
            first_thread: 0,
            origins: OriginNotes::default(),
            spans: launch.spans(),
            spare_frames: Vec::new(),
            races: None,
            mbarriers: MbarrierTable::default(),
            warpgroups: WarpgroupOrder::default(),
            counters: Counters::default(),
            step_counts: Vec::new(),
            polls: 0,
            looks_for_polls: true,
            splits: None,
            atomic_orders: None,
            seeded: launch.options.seed != 0,
            preemption: None,
            switch: None,
            ready_warps: 0,
            moved: false,
            untold: 0,
            changes: 0,
            exited: false,
            barriers: Box::default(),
            used_barriers: 0,
            live: Vec::new(),
            exits: vec![WarpExits::default(); existing.len()],
            barriers_met: 0,
            existing,
            met: Vec::new(),
            paths: PathTree::default(),
            is_astray: Cell::new(false),
        })
    }

    /// Starts the block with a number. What the host thread lends, spans and spare frames stay.
    fn start(&mut self, number: u64) {
        let launch = self.launch;
        self.number = number;
        self.index = launch.block_index(number);
        self.place_in_cluster = launch.clusters.place(number);
        (self.cluster, self.visited) = (None, None);
        self.shared_window = shared_window(number);
        self.first_thread = number * launch.shape.threads();
        self.start_shared();
        self.start_races();
        self.origins.clear();
        self.mbarriers = MbarrierTable::default();
        self.warpgroups = WarpgroupOrder::default();
        self.counters = Counters::default();
        self.splits = split_source(launch, number);
        self.atomic_orders = atomic_orders(launch, number);
        (self.preemption, self.switch) = (None, None);
        (self.polls, self.ready_warps, self.untold, self.changes) = (0, 0, 0, 0);
        (self.moved, self.exited, self.looks_for_polls) = (false, false, true);
        let barriers = &mut self.barriers;
        each(self.used_barriers, |number| barriers.get_mut(number).into_iter().for_each(BarrierState::reset));
        (self.used_barriers, self.barriers_met) = (0, 0);
        self.live.clone_from(&self.existing);
        self.exits.fill(WarpExits::default());
        self.met.clear();
        self.paths.restart();
        self.is_astray.set(false);
    }

    fn start_shared(&mut self) {
        let launch = self.launch;
        let tracked = launch.options.checks.uninitialised && launch.rules.has(ValueRule::SharedContents);
        self.shared.start(launch.shared_bytes as usize, tracked);
        // What lies in a gap is reported as that.
        launch.code.shared.gaps().for_each(|gap| self.shared.define(gap));
    }

    fn start_races(&mut self) {
        let launch = self.launch;
        let (number, bytes) = (self.number, launch.shared_bytes);
        let Some(all) = &launch.races else { return };
        match &mut self.races {
            Some(races) => {
                if !races.start(number, &self.existing, bytes) {
                    self.races = None;
                }
            }
            None => self.races = BlockRaces::new(all, number, &self.existing, bytes),
        }
        if let Some(races) = self.races.as_mut().filter(|_| launch.clustered) {
            races.window = Some(shared_window(number));
            races.clocks.cluster = Some(launch.clusters.place(number).0);
        }
    }
}

/// What splits warps at random: nothing without a seed, where lanes run in lockstep, or where the kernel would see it in `activemask`.
fn split_source(launch: &Launch<'_>, number: u64) -> Option<Random> {
    let seed = launch.options.seed;
    let free = seed != 0 && !launch.code.is_lockstep() && !launch.code.reads_active_mask();
    free.then(|| Random::new(seed.rotate_left(17) ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15)))
}

/// What picks the order of the lanes of atomics: nothing without a seed, or where the rule does not hold.
fn atomic_orders(launch: &Launch<'_>, number: u64) -> Option<Random> {
    let seed = launch.options.seed;
    let salt = number.wrapping_mul(0xd6e8_feb8_6659_fd93);
    (seed != 0).then(|| Random::new(seed.rotate_left(41) ^ salt))
}
