//! One launch: what all its blocks see, and how they are distributed over threads.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use kiln_lanes::InstructionSet;

use super::block::Block;
use super::block_progress::Progress;
use super::check::{LaunchRaces, RaceRule, Rules, ValueRules};
use super::cluster_shape::ClusterShape;
use super::launch_log::Log;
use super::lowered_code::{Code, Constant};
use super::memory::generic_address::{WORKSPACE, shared_window};
use super::memory::{Declared, DeviceHeap, GlobalMemory, Miss, MissKind, Span, SpanCache, Words};
use super::options::{LaunchShape, Options};
use super::own_line::OwnLine;
use super::preemption::Preemption;
use super::random::{Order, Random};
use super::resident_blocks::Flight;
use super::statistics::LaunchStatistics;
use super::undefined::OriginNotes;
use super::variables::ModuleVariable;
use super::warp::Register;
use super::warp_register::{Column, LANES};

/// Instructions after which a block lets another one run, in case it waits for it.
const BLOCK_QUANTUM: u64 = 1 << 22;
/// The same for blocks that were launched to wait for each other.
const COOPERATIVE_QUANTUM: u64 = 1 << 14;
/// The most instructions a block runs until the launch is told of them, where several host threads run blocks: each would take the count from the others.
const UNTOLD_LIMIT: u64 = 1 << 12;

/// The most blocks, or clusters, that a host thread takes at once where several run them.
const MOST_TAKEN: u64 = 8;

/// The memory a register of a warp takes, about.
const REGISTER_BYTES: u64 = 320;

/// What all blocks of a launch see.
pub(crate) struct Launch<'l> {
    pub(crate) code: &'l Code,
    pub(crate) shape: LaunchShape,
    pub(crate) clusters: ClusterShape,
    /// Whether blocks run as members of clusters.
    pub(crate) clustered: bool,
    pub(crate) arguments: &'l [u8],
    pub(crate) options: Options<'l>,
    pub(crate) log: &'l Log,
    /// The instructions lanes are computed with.
    pub(crate) set: InstructionSet,
    pub(crate) constants: Vec<Column>,
    /// The same as registers.
    pub(crate) constant_registers: Vec<Register>,
    /// Bytes of shared memory of a block here, gaps included.
    pub(crate) shared_bytes: u64,
    pub(crate) heap: &'l DeviceHeap,
    memory: &'l dyn GlobalMemory,
    workspace: Option<&'l Workspace>,
    /// Where the `.const` variables lie.
    constant_ranges: Vec<(u64, u64)>,
    /// The variables of the module, and where they lie.
    variables: &'l [ModuleVariable],
    globals: &'l [u64],
    /// How often blocks have changed memory, for each host thread.
    changes: Box<[OwnLine<AtomicU64>]>,
    /// Instructions since a thread last exited.
    stalled: OwnLine<AtomicU64>,
    pub(crate) races: Option<LaunchRaces>,
    pub(crate) rules: ValueRules,
    /// Where undefined bytes in global memory come from that blocks of this launch copied there.
    origins: OwnLine<Mutex<OriginNotes>>,
}

/// What a launch is made of.
pub(crate) struct Parts<'l> {
    pub(crate) code: &'l Code,
    pub(crate) shape: LaunchShape,
    pub(crate) clusters: ClusterShape,
    pub(crate) arguments: &'l [u8],
    pub(crate) options: Options<'l>,
    pub(crate) log: &'l Log,
    pub(crate) heap: &'l DeviceHeap,
    pub(crate) memory: &'l dyn GlobalMemory,
    pub(crate) workspace: Option<&'l Workspace>,
    pub(crate) constant_ranges: Vec<(u64, u64)>,
    pub(crate) variables: &'l [ModuleVariable],
    pub(crate) globals: &'l [u64],
}

impl<'l> Launch<'l> {
    pub(crate) fn new(parts: Parts<'l>) -> Self {
        let globals = parts.globals;
        let value = |constant: &Constant| match constant {
            Constant::Bits(bits) => *bits,
            Constant::Variable(at, offset) => {
                globals.get(*at as usize).copied().unwrap_or(0).wrapping_add_signed(*offset)
            }
        };
        let Parts { code, shape, clusters, arguments, options, log, heap, memory, workspace, .. } = parts;
        Self {
            code,
            shape,
            clusters,
            clustered: clusters.size() > 1 || code.meets_in_clusters(),
            arguments,
            options,
            log,
            set: if options.portable { InstructionSet::PORTABLE } else { InstructionSet::detected() },
            heap,
            memory,
            workspace,
            constant_ranges: parts.constant_ranges,
            variables: parts.variables,
            globals,
            changes: (0..workers(&options, clusters)).map(|_| OwnLine::default()).collect(),
            stalled: OwnLine::default(),
            rules: options.value_rules(),
            origins: OwnLine::default(),
            races: options.checks.races.then(|| race_check(code, &shape, clusters, &options)),
            constants: code.constants.iter().map(|constant| [value(constant); LANES]).collect(),
            constant_registers: { code.constants.iter() }
                .map(|constant| Register::constant(value(constant)))
                .collect(),
            shared_bytes: code.shared.dynamic() + u64::from(shape.dynamic_shared_bytes),
        }
    }

    /// A variable of the module, and its address.
    pub(crate) fn variable(&self, at: u32) -> Option<(&ModuleVariable, u64)> {
        Some((self.variables.get(at as usize)?, *self.globals.get(at as usize)?))
    }

    /// Where undefined bytes in global memory come from.
    pub(crate) fn origins(&self) -> MutexGuard<'_, OriginNotes> {
        self.origins.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The index of a block in the grid.
    pub(crate) fn block_index(&self, number: u64) -> [u32; 3] {
        let [x, y, _] = self.shape.grid.map(u64::from);
        [number % x, number / x % y, number / x / y].map(|part| part as u32)
    }

    pub(crate) fn spans(&self) -> SpanCache<'_> {
        SpanCache::new(self.memory, self.heap, self.workspace.map(|w| w as &dyn GlobalMemory))
    }

    /// Whether an address lies in a `.const` variable.
    #[inline]
    pub(crate) fn is_constant(&self, address: u64) -> bool {
        self.constant_ranges.iter().any(|(start, end)| (*start..*end).contains(&address))
    }

    /// How often memory was changed by blocks that have paused since.
    pub(crate) fn changes(&self) -> u64 {
        // Each count only grows, so their sum is the same as before only if none of them has.
        self.changes.iter().map(|changes| changes.load(Ordering::Relaxed)).sum()
    }

    /// Keeps that blocks of a host thread have changed memory so many times.
    fn note_changes(&self, worker: u64, times: u64) {
        if let Some(changes) = self.changes.get(worker as usize) {
            changes.fetch_add(times, Ordering::Relaxed);
        }
    }

    /// Takes the instructions in that a block has not told of yet, if they are many; whether more ran than may run from one exit of a thread to the next.
    pub(crate) fn stalls(&self, untold: &mut u64, exited: bool) -> bool {
        let limit = self.options.stall_limit;
        if exited {
            *untold = 0;
            self.note_exit();
        }
        let is_alone = self.changes.len() == 1;
        if exited || limit == u64::MAX || !is_alone && *untold < UNTOLD_LIMIT.min(limit / 1024) {
            return false;
        }
        let instructions = std::mem::take(untold);
        let before = self.stalled.fetch_add(instructions, Ordering::Relaxed);
        before.saturating_add(instructions) > limit
    }

    /// A thread has exited: instructions count from here.
    pub(crate) fn note_exit(&self) {
        // Where nothing was counted, nothing is written: all host threads come here.
        if self.stalled.load(Ordering::Relaxed) != 0 {
            self.stalled.store(0, Ordering::Relaxed);
        }
    }

    /// Runs all blocks.
    pub(crate) fn run(&self) {
        let workers = self.changes.len() as u64;
        if self.code.ends_at_once() && self.options.statistics.is_none() {
            return self.run_one_for_all();
        }
        let next = OwnLine::new(AtomicU64::new(0));
        if workers == 1 {
            return self.work(&next, 0, 1);
        }
        std::thread::scope(|scope| {
            for worker in 1..workers {
                let next = &next;
                scope.spawn(move || self.work(next, worker, workers));
            }
            self.work(&next, 0, workers);
        });
    }

    /// Runs one block and counts it for all of them: they do the same, and none can see another.
    fn run_one_for_all(&self) {
        let mut block = Block::new(self, 0, None);
        match block.run(BLOCK_QUANTUM) {
            Ok(_) => self.log.count(block.take_counters().times(self.shape.blocks())),
            Err(fault) => self.log.fail(fault),
        }
    }

    /// Runs blocks until none is left.
    fn work(&self, next: &AtomicU64, worker: u64, workers: u64) {
        let clusters = self.clusters.count();
        let order = Order::new(clusters, self.options.seed);
        let block = (self.block_bytes(), self.shape.threads());
        let mut flight = Flight::new((worker, workers), self.preemption(worker), block, self.spans());
        flight.step_counts = self.options.statistics.map(LaunchStatistics::nothing).unwrap_or_default();
        self.run_blocks(next, (worker, workers), &order, &mut flight);
        self.log.count(flight.counters);
        if let Some(statistics) = self.options.statistics {
            statistics.add(&flight.step_counts);
        }
    }

    /// The same, with the blocks that are in flight.
    fn run_blocks<'b>(
        &'b self,
        next: &AtomicU64,
        (worker, workers): (u64, u64),
        order: &Order,
        flight: &mut Flight<'b>,
    ) {
        let clusters = self.clusters.count();
        if self.shape.cooperative {
            // All blocks are in flight from the start: they may wait for each other.
            let own = (worker..clusters).step_by(workers as usize);
            for place in own {
                let blocks = self.start(order.at(place), None, flight);
                blocks.into_iter().for_each(|block| flight.add_new(block));
            }
            flight.all_started = true;
            while let Some(block) = flight.resume(self.changes()) {
                self.advance(block, COOPERATIVE_QUANTUM, flight);
            }
            return;
        }
        // Neighbours run on one host thread: they use neighbouring memory.
        let most = if workers == 1 { 1 } else { (clusters / (64 * workers)).clamp(1, MOST_TAKEN) };
        let mut taken = 0..0;
        // The last block that was done, whose room the next one takes.
        let mut done = None;
        while !self.log.is_stopped() {
            let starts =
                if self.clustered { flight.starts_cluster() } else { flight.starts_another(self.changes()) };
            let started = starts.then(|| {
                taken.next().unwrap_or_else(|| {
                    let first = next.fetch_add(most, Ordering::Relaxed);
                    taken = first + 1..first + most;
                    first
                })
            });
            flight.all_started |= started.is_some_and(|place| place >= clusters);
            let blocks = match started.filter(|place| *place < clusters) {
                Some(place) => self.start(order.at(place), done.take(), flight),
                None => flight.resume(self.changes()).into_iter().collect(),
            };
            if blocks.is_empty() {
                return;
            }
            for block in blocks {
                done = self.advance(block, BLOCK_QUANTUM, flight).or(done);
            }
        }
    }

    /// The blocks of a cluster that starts; `done` is one whose room can be taken over.
    fn start<'b>(&'b self, cluster: u64, done: Option<Block<'b>>, flight: &mut Flight<'b>) -> Vec<Block<'b>> {
        if !self.clustered {
            return vec![Block::new(self, cluster, done)];
        }
        let (mut blocks, shared) = Block::of_cluster(self, cluster);
        flight.add_cluster(shared);
        if self.options.seed != 0 {
            Random::new(self.options.seed ^ cluster.wrapping_mul(0x9e37_79b9_7f4a_7c15)).shuffle(&mut blocks);
        }
        blocks
    }

    /// Runs a block for a while and keeps it if it is not done; answers one that is.
    fn advance<'b>(
        &'b self,
        mut block: Block<'b>,
        quantum: u64,
        flight: &mut Flight<'b>,
    ) -> Option<Block<'b>> {
        let progress = flight.run(&mut block, quantum);
        flight.counters.add(block.take_counters());
        let changes = block.take_changes();
        self.note_changes(flight.worker, changes);
        flight.note(progress, changes > 0);
        match progress {
            Ok(Progress::Done) if !self.clustered => return Some(block),
            Ok(Progress::Done) => {
                if let Some(races) = &self.races {
                    let ended = flight.ended();
                    let ranks = 0..self.clusters.size() as usize;
                    for block in ended
                        .iter()
                        .flat_map(|cluster| ranks.clone().map(|rank| self.clusters.block(*cluster, rank)))
                    {
                        races.drop_pages(shared_window(block), self.shared_bytes);
                    }
                }
                // The others may have waited for it alone.
                flight.tell_stuck_cluster(self.log);
            }
            Ok(_) if self.log.is_stopped() => {}
            Ok(progress) => {
                flight.add(block, progress);
                flight.tell_stuck_cluster(self.log);
                if !flight.is_alone() {
                    // What it waits for may be done by another host thread.
                    std::thread::yield_now();
                }
                if self.options.finds_endless_waits() && flight.only_repeats(self.changes()) {
                    match self.options.let_others_write() {
                        true => {
                            self.note_changes(flight.worker, 1);
                            flight.start_again();
                        }
                        false => flight.fail(self.log),
                    }
                }
            }
            Err(fault) => self.log.fail(fault),
        }
        None
    }

    /// What decides where blocks are preempted: nothing without a seed.
    fn preemption(&self, worker: u64) -> Option<Preemption> {
        let preempts = self.options.seed != 0 && rules(&self.options).has(RaceRule::Preemption);
        preempts.then(|| Preemption::new(self.options.seed, worker))
    }

    /// The memory a block takes, about.
    fn block_bytes(&self) -> u64 {
        let Some(entry) = self.code.functions.first() else { return self.shared_bytes };
        let warps = self.shape.threads().div_ceil(LANES as u64);
        let register_bytes = (u64::from(entry.columns) * REGISTER_BYTES).saturating_mul(warps);
        let frame_bytes = entry.frame_bytes.saturating_mul(self.shape.threads());
        frame_bytes.saturating_add(register_bytes).saturating_add(self.shared_bytes)
    }
}

/// How many host threads run blocks. The blocks of a cluster run on one of them.
fn workers(options: &Options<'_>, clusters: ClusterShape) -> u64 {
    (options.threads.max(1) as u64).min(clusters.count().max(1))
}

/// The race check of a launch.
fn race_check(
    code: &Code,
    shape: &LaunchShape,
    clusters: ClusterShape,
    options: &Options<'_>,
) -> LaunchRaces {
    let warps = shape.threads().div_ceil(LANES as u64);
    LaunchRaces::new(code, warps as u32, shape.blocks(), clusters, rules(options))
}

/// The rules that hold: all, unless a test takes one out.
fn rules(options: &Options<'_>) -> Rules {
    #[cfg(feature = "mutations")]
    let rules = Rules::without(options.without_rule);
    #[cfg(not(feature = "mutations"))]
    let rules = {
        let _ = options;
        Rules::default()
    };
    rules
}

/// The memory the blocks of a cooperative launch meet in: the runtime library keeps its grid barrier there.
#[derive(Debug)]
pub(crate) struct Workspace {
    words: Words,
}

impl Workspace {
    const BYTES: u64 = 4096;

    pub(crate) fn new() -> Self {
        Self { words: Words::zeroed(Self::BYTES) }
    }
}

impl GlobalMemory for Workspace {
    fn span(&self, address: u64) -> Option<Span<'_>> {
        let (start, end) = (WORKSPACE, WORKSPACE + Self::BYTES);
        let span = Span {
            start,
            end,
            origin: start,
            writable: true,
            declared: Declared::ReadWrite,
            cells: &self.words,
        };
        (start..end).contains(&address).then_some(span)
    }

    fn miss(&self, _: u64, _: u64) -> Miss {
        Miss { kind: MissKind::OutOfBounds, near: "outside of the workspace of the grid".to_owned() }
    }
}
