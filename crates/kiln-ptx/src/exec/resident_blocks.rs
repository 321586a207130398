//! The resident blocks that one host thread runs in turns.

use std::collections::{HashMap, VecDeque};

use super::block::Block;
use super::block_progress::Progress;
use super::cluster::Cluster;
use super::fault::ExecFault;
use super::finding::ExecFindingKind;
use super::launch_log::Log;
use super::memory::SpanCache;
use super::outcome::Counters;
use super::polled_words::PolledWords;
use super::preemption::Preemption;
use super::statistics::ExecutionCounts;

/// Blocks one thread keeps in flight when they wait for others.
const MAX_RESIDENT: usize = 128;
/// The same where all of them wait for memory: as many as the largest devices run at once, if so much memory holds them.
const PROCESSORS: u64 = 148;
const PROCESSOR_BLOCKS: u64 = 32;
const PROCESSOR_THREADS: u64 = 2048;
const WAITING_BYTES: u64 = 512 << 20;
/// Turns in which blocks only waited, one after the other, until another one starts.
const IDLE_TURNS: usize = 4;
/// The most blocks in flight that were preempted, and the memory they may take. More start only while fewer were preempted.
const MAX_PREEMPTED: u64 = 16;
const PREEMPTED_BYTES: u64 = 64 << 20;

/// The blocks one thread runs in turns.
pub(crate) struct Flight<'b> {
    blocks: VecDeque<Resident<'b>>,
    /// How many of the last ones only repeat what they do, with memory unchanged since.
    repeating: usize,
    /// How many were preempted: they could go on.
    preempted: usize,
    preempted_limit: usize,
    /// How many are in flight at most when all of them wait for memory.
    waiting_limit: usize,
    /// The number of the thread.
    pub(crate) worker: u64,
    /// Whether no other thread runs blocks of the launch.
    alone: bool,
    /// What its blocks executed, and what is counted of each step, if anything is.
    pub(crate) counters: Counters,
    pub(crate) step_counts: Vec<ExecutionCounts>,
    /// Whether no block is left to start.
    pub(crate) all_started: bool,
    /// Clusters of which blocks are in flight, by number; one is not here while a block of it runs.
    clusters: HashMap<u64, Box<Cluster>>,
    /// The clusters that ended last.
    ended: Vec<u64>,
    /// A cluster of which no block can go on.
    stuck: Option<u64>,
    /// Turns since a block last got further.
    idle: usize,
    /// With a seed: where blocks are preempted, and which of them goes on.
    preemption: Option<Preemption>,
    /// Where the words lie for which blocks wait.
    spans: SpanCache<'b>,
}

/// A block that has started and does not run now.
struct Resident<'b> {
    block: Box<Block<'b>>,
    preempted: bool,
    /// For how many turns others go first.
    held: u32,
    /// What it waits for, if its threads only repeat what they do.
    waits_for: Option<PolledWords>,
}

impl<'b> Flight<'b> {
    /// For the blocks of one of so many host threads, of which each takes `block_bytes` of memory.
    pub(crate) fn new(
        (worker, workers): (u64, u64),
        preemption: Option<Preemption>,
        (block_bytes, block_threads): (u64, u64),
        spans: SpanCache<'b>,
    ) -> Self {
        let preempted_limit = (PREEMPTED_BYTES / block_bytes.max(1)).clamp(2, MAX_PREEMPTED) as usize;
        let on_processor = (PROCESSOR_THREADS / block_threads.max(1)).clamp(1, PROCESSOR_BLOCKS);
        let waiting_limit = (PROCESSORS * on_processor).min(WAITING_BYTES / block_bytes.max(1));
        Self {
            blocks: VecDeque::new(),
            repeating: 0,
            preempted: 0,
            preempted_limit,
            waiting_limit: (waiting_limit as usize).max(MAX_RESIDENT),
            worker,
            alone: workers == 1,
            counters: Counters::default(),
            step_counts: Vec::new(),
            all_started: false,
            clusters: HashMap::new(),
            ended: Vec::new(),
            stuck: None,
            idle: 0,
            preemption,
            spans,
        }
    }

    /// Whether another block should start before one goes on that has started; `changes`: how often memory was changed in the launch.
    pub(crate) fn starts_another(&mut self, changes: u64) -> bool {
        let has_room = self.preempted < self.preempted_limit
            && (self.blocks.len() < MAX_RESIDENT || self.waits_for_more(changes));
        let goes_on = self.preempted > 0
            && self.blocks.len() > 1
            && self.preemption.as_mut().is_some_and(|picks| picks.one_in(2));
        has_room && !self.all_started && !goes_on
    }

    /// Whether the blocks in flight probably wait for one that has not started.
    fn waits_for_more(&mut self, changes: u64) -> bool {
        if self.all_started || self.blocks.len() >= self.waiting_limit {
            return false;
        }
        self.idle >= 2 * self.blocks.len()
            || self.idle >= IDLE_TURNS && self.all_waited()
            || self.all_wait(changes)
    }

    /// Whether all blocks waited for memory when they last ran.
    fn all_waited(&self) -> bool {
        self.blocks.iter().all(|resident| resident.waits_for.is_some())
    }

    /// Whether another cluster should start before blocks of those go on that have started: they wait for others, or a seed says so.
    pub(crate) fn starts_cluster(&mut self) -> bool {
        let waits = self.idle >= self.blocks.len();
        let has_room = self.blocks.len() < MAX_RESIDENT && self.preempted < self.preempted_limit;
        let picked = |flight: &mut Self| flight.preemption.as_mut().is_some_and(|picks| picks.one_in(8));
        !self.all_started && (self.blocks.is_empty() || has_room && (waits || picked(self)))
    }

    /// Adds what the blocks of a cluster share.
    pub(crate) fn add_cluster(&mut self, cluster: Box<Cluster>) {
        self.clusters.insert(cluster.number, cluster);
    }

    /// The clusters that have ended since this was last asked.
    pub(crate) fn ended(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.ended)
    }

    /// Ends the launch if no block of a cluster can go on.
    pub(crate) fn tell_stuck_cluster(&mut self, log: &Log) {
        let Some(mut cluster) = self.stuck.take().and_then(|number| self.clusters.remove(&number)) else {
            return;
        };
        let number = cluster.number;
        let mut waits = Vec::new();
        for at in 0..self.blocks.len() {
            let block = &mut self.blocks[at].block;
            if block.place_in_cluster().0 != number {
                continue;
            }
            block.enter_cluster(Some(cluster));
            let words = block.waiting();
            let Some(back) = block.leave_cluster() else { return };
            cluster = back;
            waits.push((block.place_in_cluster().1, at, words));
        }
        waits.sort_by_key(|(rank, ..)| *rank);
        let words: Vec<String> =
            waits.iter().map(|(rank, _, waits)| format!("block of rank {rank}: {}", waits.words)).collect();
        let text = format!("deadlock: no thread of the cluster can go on; {}", words.join("; "));
        if let Some((_, at, first)) = waits.first() {
            log.fail(self.blocks[*at].block.report_stuck_cluster(text, first));
        }
        self.blocks.clear();
    }

    /// Adds a block that goes on later.
    pub(crate) fn add(&mut self, block: Block<'b>, progress: Progress) {
        let preempted = progress == Progress::Preempted;
        self.preempted += usize::from(preempted);
        let held = self.preemption.as_ref().filter(|_| preempted).map_or(0, Preemption::held);
        let waits = progress == Progress::Repeating && self.clusters.is_empty();
        let waits_for = waits.then(|| PolledWords::of(&block, &mut self.spans));
        self.blocks.push_back(Resident { block: Box::new(block), preempted, held, waits_for });
    }

    /// Adds one that has not run.
    pub(crate) fn add_new(&mut self, block: Block<'b>) {
        self.blocks.push_back(Resident {
            block: Box::new(block),
            preempted: false,
            held: 0,
            waits_for: None,
        });
    }

    /// The block that goes on, if one is in flight: mostly the one that waited longest. One that waits for memory goes on when that has changed, or if all of
    /// them do; then it is not asked again soon whether it waits, so that limits count what it does. `changes`: how often memory was changed in the launch.
    pub(crate) fn resume(&mut self, changes: u64) -> Option<Block<'b>> {
        let at = self.place_to_resume();
        let count = self.blocks.len();
        let mut places = (0..count).map(|step| (at + step) % count);
        let ready = places.find(|place| !waits(&self.blocks[*place], changes, &mut self.spans));
        let mut resident = self.blocks.remove(ready.unwrap_or(at))?;
        self.preempted -= usize::from(resident.preempted);
        resident.block.look_for_polls(ready.is_some());
        Some(*resident.block)
    }

    fn place_to_resume(&mut self) -> usize {
        // Each block must get a turn before it is said that all of them only repeat what they do.
        let Some(preemption) = self.preemption.as_mut().filter(|_| self.repeating == 0) else { return 0 };
        for _ in 0..self.blocks.len() {
            match self.blocks.front_mut() {
                Some(first) if first.held > 0 => first.held -= 1,
                _ => break,
            }
            self.blocks.rotate_left(1);
        }
        if preemption.one_in(8) { preemption.place_in(self.blocks.len().saturating_sub(1)) } else { 0 }
    }

    /// Runs a block for about `quantum` instructions.
    pub(crate) fn run(&mut self, block: &mut Block<'b>, quantum: u64) -> Result<Progress, ExecFault> {
        if let Some(preemption) = &mut self.preemption {
            preemption.start_turn();
        }
        block.lend(self.preemption.take(), &mut self.step_counts);
        let (number, rank) = block.place_in_cluster();
        // Most launches have no clusters, and then no number is hashed.
        let cluster = if self.clusters.is_empty() { None } else { self.clusters.remove(&number) };
        block.enter_cluster(cluster);
        let progress = block.run(quantum);
        self.preemption = block.give_back(&mut self.step_counts);
        if let Some(mut cluster) = block.leave_cluster() {
            if progress == Ok(Progress::Stuck) {
                cluster.set_stuck(rank);
            }
            self.stuck = cluster.is_stuck().then_some(number);
            match cluster.is_done() {
                true => self.ended.push(number),
                false => drop(self.clusters.insert(number, cluster)),
            }
        }
        progress
    }

    /// Notes how far a block got, and whether it changed memory.
    pub(crate) fn note(&mut self, progress: Result<Progress, ExecFault>, changed: bool) {
        let repeats = matches!(progress, Ok(Progress::Repeating | Progress::Stuck));
        if changed || !repeats {
            self.repeating = 0;
        }
        self.repeating += usize::from(repeats);
        self.idle = if changed || progress == Ok(Progress::Done) { 0 } else { self.idle + 1 };
    }

    /// Something else changed memory.
    pub(crate) fn start_again(&mut self) {
        self.repeating = 0;
    }

    /// Whether no other host thread runs blocks of the launch.
    pub(crate) fn is_alone(&self) -> bool {
        self.alone
    }

    /// Whether all blocks only repeat what they do; `changes`: how often memory was changed in the launch.
    pub(crate) fn only_repeats(&mut self, changes: u64) -> bool {
        let is_full = self.all_started || self.blocks.len() >= self.waiting_limit;
        let may_be = self.alone && is_full && self.repeating > 0;
        may_be && (self.repeating >= self.blocks.len() || self.all_wait(changes))
    }

    /// Whether all blocks wait for memory that has not changed since.
    fn all_wait(&mut self, changes: u64) -> bool {
        let spans = &mut self.spans;
        self.blocks.iter().all(|resident| waits(resident, changes, spans))
    }

    /// Ends the launch: no block will change what the others wait for.
    pub(crate) fn fail(&mut self, log: &Log) {
        let loops = self.blocks.iter().find(|resident| resident.block.has_ready_thread());
        if let Some(first) = loops.or(self.blocks.front()) {
            log.fail(first.block.no_end(ExecFindingKind::EndlessWait));
        }
        self.blocks.clear();
    }
}

/// Whether a block waits for memory that has not changed since.
fn waits(resident: &Resident<'_>, changes: u64, spans: &mut SpanCache<'_>) -> bool {
    resident.waits_for.as_ref().is_some_and(|words| words.is_unchanged(changes, spans))
}
