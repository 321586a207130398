//! Random programs whose worker ends at every place: what is left must be what one stream, one step after another, would have left.
//!
//! The oracle knows the program and nothing of marks, records or spans. It holds three things against each other: what blocks hold, what
//! tickets and callbacks said, and what the report says had started.

mod judgement;
mod pins;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use kiln::order::Mutation;
use kiln::recovery::{DeviceSpec, PostMortem, Process, Replay};
use kiln::{DeviceRuntime, GpuRef, Kernel, Stream, Ticket, error::ErrorKind};

use self::pins::Pin;
use crate::{replay_kernels, rig};

const BLOCKS: usize = 7;
const STREAMS: usize = 3;
const STEPS: usize = 22;
/// What a kernel that faults would have left is nothing that a reader may find.
const POISON: u32 = u32::MAX;

/// A generator that needs no crate.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % sides
    }
}

/// How a worker ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum End {
    /// Killed when everything is queued.
    Killed,
    /// Killed by another thread while work is being queued.
    Ambushed,
    /// By a kernel that faults.
    Fault,
    /// By a kernel that faults, and the program goes on when the next worker is there.
    FaultAndOn,
}

/// Something that was queued.
struct Item {
    ticket: Ticket,
    /// By the number of a block or of pinned memory, which no other ever has.
    reads: Vec<usize>,
    writes: usize,
    /// Whether nothing of what was in the block shows through.
    overwrites: bool,
    /// What its callback was told.
    told: Option<Arc<Told>>,
}

/// What a callback was told.
#[derive(Default)]
struct Told {
    /// How often it was called, and how often with good news.
    calls: [AtomicUsize; 2],
    /// The last bad news.
    error: Mutex<Option<String>>,
}

struct Slot {
    buffer: GpuRef<u32>,
    number: usize,
    /// What it holds when everything that was queued is done; none where a submission failed, of which it is not known how far it came.
    value: Option<u32>,
    last: Option<usize>,
}

struct Program {
    gpu: DeviceRuntime,
    streams: Vec<Stream>,
    kernels: [Kernel; 4],
    dice: Dice,
    slots: Vec<Slot>,
    pins: Vec<Pin>,
    items: Vec<Item>,
    /// Blocks that a submission was to write which failed with the device: it may have been queued, and then it may have started.
    perhaps_written: Vec<usize>,
    blocks: usize,
    next: u32,
}

/// What is wrong.
#[derive(Debug)]
enum Wrong {
    /// A block holds other bytes than it was to.
    Bytes(String),
    /// Something was said that is not so.
    Word(String),
}

impl Wrong {
    fn with(self, report: &PostMortem) -> Self {
        match self {
            Self::Bytes(what) => Self::Bytes(format!("{what}\n{report}")),
            Self::Word(what) => Self::Word(format!("{what}\n{report}")),
        }
    }
}

/// What was found, for those who want to know that something happened at all.
#[derive(Default, Debug)]
pub(crate) struct Tally {
    pub(crate) replayed: usize,
    pub(crate) started: usize,
    pub(crate) needs_lost: usize,
    pub(crate) lost: usize,
    pub(crate) kept: usize,
    pub(crate) pinned: usize,
}

impl Program {
    fn new(seed: u64, standby: bool, mutation: Option<Mutation>) -> Self {
        let watchdog = Some(Duration::from_secs(10));
        let process = Process { standby, watchdog, replay: Replay::NotStarted, ..rig::process() };
        let gpu = rig::open_mutated(&DeviceSpec::simulated(seed), process, mutation);
        let kernels =
            ["copy", "bump", "sum", "late"].map(|name| gpu.kernel(replay_kernels::PTX, name).unwrap());
        let streams = (0..STREAMS).map(|_| gpu.stream().unwrap()).collect();
        let (dice, slots, items) = (Dice(seed), Vec::new(), Vec::new());
        let pins = Vec::new();
        let perhaps_written = Vec::new();
        let mut program =
            Self { gpu, streams, kernels, dice, slots, pins, items, perhaps_written, blocks: 0, next: 0 };
        for _ in 0..BLOCKS {
            let slot = program.fresh();
            program.slots.push(slot);
        }
        program.pin();
        program.gpu.synchronize().unwrap();
        program
    }

    /// A block that was filled, perhaps where another was a moment ago.
    fn fresh(&mut self) -> Slot {
        self.next += 1000;
        let buffer = self.gpu.upload(&[self.next]).unwrap();
        self.blocks += 1;
        Slot { buffer, number: self.blocks, value: Some(self.next), last: None }
    }

    /// Queues one thing. False if the device took nothing any more.
    fn step(&mut self) -> bool {
        let [to, from, other] = [0; 3].map(|_| self.dice.roll(BLOCKS));
        let stream = self.streams[self.dice.roll(STREAMS)].clone();
        let kind = self.dice.roll(12);
        if kind >= 10 {
            return self.step_on_pinned(&stream, kind == 10, to);
        }
        self.next += 1000;
        let fill = self.next;
        let value = |slot: usize| self.slots[slot].value;
        let buffer = |slot: usize| &self.slots[slot].buffer;
        let distinct = to != from && to != other;
        let (submitted, reads, overwrites, value) = match kind {
            0 => (buffer(to).fill(fill), vec![], true, Some(fill)),
            1 => (buffer(to).upload_on(&stream, &[fill]), vec![], true, Some(fill)),
            2 if distinct => (buffer(to).copy_from_on(&stream, buffer(from)), vec![from], true, value(from)),
            3 | 4 if distinct => {
                let mut launch = self.gpu.launch(&self.kernels[0]);
                launch.threads(1).on(&stream).read(buffer(from)).write(buffer(to));
                // SAFETY: the kernel touches one element of each.
                (unsafe { launch.submit() }, vec![from], false, value(from))
            }
            5 | 6 => {
                let mut launch = self.gpu.launch(&self.kernels[1]);
                launch.threads(1).on(&stream).read_write(buffer(to));
                // SAFETY: as above.
                (unsafe { launch.submit() }, vec![to], false, value(to).map(plus_one))
            }
            7 if distinct => {
                let mut launch = self.gpu.launch(&self.kernels[2]);
                launch.threads(1).on(&stream).read(buffer(from)).read(buffer(other)).write(buffer(to));
                // SAFETY: as above.
                let submitted = unsafe { launch.submit() };
                let sum = value(from).zip(value(other)).map(|(left, right)| plus(left, right));
                (submitted, vec![from, other], false, sum)
            }
            8 => {
                // A thread waits for something, and the device gets on meanwhile.
                if let Some(item) = self.items.len().checked_sub(1) {
                    let item = &self.items[self.dice.roll(item + 1)];
                    let _ = item.ticket.wait_within(Duration::from_millis(5));
                }
                return true;
            }
            _ => {
                // The memory of one that is dropped behind its work goes to the next.
                if self.gpu.state().is_ready() && self.slots[to].value.is_some() {
                    let Ok(buffer) = self.gpu.allocate_on::<u32>(&stream, 1) else { return false };
                    self.blocks += 1;
                    self.slots[to] = Slot { buffer, number: self.blocks, value: None, last: None };
                    let slot = &self.slots[to];
                    return match slot.buffer.upload_on(&stream, &[fill]) {
                        Ok(ticket) => {
                            self.note(ticket, to, vec![], true, Some(fill));
                            true
                        }
                        Err(error) => self.refused(&error, to),
                    };
                }
                return true;
            }
        };
        match submitted {
            Ok(ticket) => {
                self.note(ticket, to, reads, overwrites, value);
                true
            }
            Err(error) => self.refused(&error, to),
        }
    }

    /// A kernel that writes its block and then faults. False if the device took nothing any more.
    fn fault(&mut self) -> bool {
        let to = 1 + self.dice.roll(BLOCKS - 1);
        let stream = self.streams[1 + self.dice.roll(STREAMS - 1)].clone();
        let submitted = {
            let mut launch = self.gpu.launch(&self.kernels[3]);
            launch.threads(1).on(&stream).write(&self.slots[to].buffer).value(50_u32);
            // SAFETY: it is to fault.
            unsafe { launch.submit() }
        };
        match submitted {
            Ok(ticket) => {
                self.note(ticket, to, vec![], false, Some(POISON));
                true
            }
            Err(error) => self.refused(&error, to),
        }
    }

    fn note(&mut self, ticket: Ticket, to: usize, reads: Vec<usize>, overwrites: bool, value: Option<u32>) {
        let reads = reads.into_iter().map(|slot| self.slots[slot].number).collect();
        self.slots[to].value = value;
        self.slots[to].last = Some(self.items.len());
        self.push(ticket, self.slots[to].number, reads, overwrites);
    }

    /// Remembers what was queued, by numbers, and has a callback told how it ends.
    fn push(&mut self, ticket: Ticket, writes: usize, reads: Vec<usize>, overwrites: bool) {
        let told = Arc::<Told>::default();
        let seen = told.clone();
        ticket.on_done(move |answer| {
            seen.calls[1].fetch_add(usize::from(answer.is_ok()), Ordering::SeqCst);
            *seen.error.lock().unwrap() = answer.err().map(|error| format!("{error:#}"));
            seen.calls[0].fetch_add(1, Ordering::SeqCst);
        });
        self.items.push(Item { ticket, reads, writes, overwrites, told: Some(told) });
    }

    fn note_unwatched(&mut self, ticket: Ticket, to: usize, reads: Vec<usize>, value: Option<u32>) {
        let reads = reads.into_iter().map(|slot| self.slots[slot].number).collect();
        (self.slots[to].value, self.slots[to].last) = (value, Some(self.items.len()));
        let (writes, told) = (self.slots[to].number, None);
        self.items.push(Item { ticket, reads, writes, overwrites: false, told });
    }

    /// What a submission that was refused leaves: nothing, or a block of which nothing is known.
    fn refused(&mut self, error: &kiln::Error, to: usize) -> bool {
        if !is_untouched(error) {
            self.slots[to].value = None;
            self.perhaps_written.push(self.slots[to].number);
        }
        false
    }

    /// Ends the worker after some steps, queues the rest as far as that is taken, and says what is wrong with what is left.
    fn run(mut self, end: End, at: usize) -> Result<Tally, Wrong> {
        let steps = if end == End::Killed { at + 1 } else { STEPS };
        let ambush = (end == End::Ambushed).then(|| {
            let (device, pause) = (self.gpu.isolated_device().unwrap().clone(), self.dice.roll(3000) as u64);
            std::thread::spawn(move || {
                std::thread::sleep(Duration::from_micros(pause));
                device.kill_worker();
            })
        });
        for step in 0..steps {
            if step == at && matches!(end, End::Fault | End::FaultAndOn) && !self.fault() {
                break;
            }
            if step == at && end == End::FaultAndOn {
                rig::recovered(&self.gpu, 0);
            }
            // What needs a lost block is refused, and what follows may overwrite it.
            if !self.step() && end != End::FaultAndOn {
                break;
            }
        }
        if let Some(ambush) = ambush {
            ambush.join().unwrap();
        }
        let report = match end {
            End::Killed => rig::kill(&self.gpu),
            End::Fault | End::FaultAndOn | End::Ambushed => rig::recovered(&self.gpu, 0),
        };
        self.judge(&report)
    }

    /// One more on one stream while another faults: it may have run or not, and it is not known which.
    fn run_beside_a_fault(mut self) -> Result<Tally, Wrong> {
        let submitted = {
            let mut launch = self.gpu.launch(&self.kernels[1]);
            launch.threads(1).on(&self.streams[0]).read_write(&self.slots[0].buffer);
            // SAFETY: the kernel touches one element.
            unsafe { launch.submit() }
        };
        let value = self.slots[0].value.map(plus_one);
        // No thread waits, since that would make it known.
        self.note_unwatched(submitted.unwrap(), 0, vec![0], value);
        self.fault();
        let report = rig::recovered(&self.gpu, 0);
        self.judge(&report)
    }
}

/// Whether a submission was refused before anything was touched: not ready, or ready again already, without the block.
fn is_untouched(error: &kiln::Error) -> bool {
    let untouched = matches!(error.kind(), ErrorKind::NotReady { .. } | ErrorKind::Stale(_));
    assert!(untouched || error.is_lost(), "{error}");
    untouched
}

fn plus_one(value: u32) -> u32 {
    plus(value, 1)
}

/// Nothing that comes of poison is anything else.
fn plus(left: u32, right: u32) -> u32 {
    if left == POISON || right == POISON { POISON } else { left + right }
}

fn program(seed: u64, end: End, standby: bool) -> Result<Tally, Wrong> {
    Program::new(seed, standby, None).run(end, (seed as usize * 5) % STEPS)
}

fn programs(seeds: std::ops::Range<u64>, end: End, standby: bool) -> Tally {
    let mut all = Tally::default();
    for seed in seeds {
        let tally = program(seed, end, standby)
            .unwrap_or_else(|wrong| panic!("seed {seed}, {end:?}, standby {standby}: {wrong:?}"));
        all.replayed += tally.replayed;
        all.started += tally.started;
        all.needs_lost += tally.needs_lost;
        all.lost += tally.lost;
        all.kept += tally.kept;
        all.pinned += tally.pinned;
    }
    all
}

#[test]
fn what_is_left_by_a_killed_worker_is_what_one_stream_would_have_left() {
    let all = programs(0..110, End::Killed, false);
    assert!(all.replayed > 50 && all.started > 5 && all.kept > 50 && all.pinned > 50, "{all:?}");
}

#[test]
fn what_is_left_by_a_worker_that_dies_while_work_is_queued_is_what_one_stream_would_have_left() {
    let all = programs(3000..3080, End::Ambushed, false);
    assert!(all.replayed > 50 && all.kept > 50, "{all:?}");
}

#[test]
fn what_is_left_by_a_fault_is_what_one_stream_would_have_left() {
    let all = programs(1000..1080, End::Fault, false);
    assert!(all.replayed > 50 && all.needs_lost > 20 && all.lost > 50, "{all:?}");
}

#[test]
fn a_standby_does_work_again_as_a_fresh_worker_does() {
    let all = programs(2000..2030, End::Fault, true);
    assert!(all.replayed > 0 && all.lost > 0, "{all:?}");
}

#[test]
fn blocks_that_are_overwritten_behind_a_takeover_hold_what_was_written() {
    for standby in [false, true] {
        let all = programs(4000..4020, End::FaultAndOn, standby);
        assert!(all.kept > 50 && all.lost > 0, "{all:?}");
    }
}

/// By its bytes, and not because the report gives it away.
#[test]
fn each_rule_that_is_taken_out_is_missed() {
    type Run = fn(Program) -> Result<Tally, Wrong>;
    let beside: Run = |program| program.run_beside_a_fault();
    let behind: Run = |program| program.run(End::Fault, 5);
    for (mutation, run) in [(Mutation::ReplayStarted, beside), (Mutation::ReplayOnLost, behind)] {
        let shows = |seed: &u64| {
            let program = Program::new(*seed, false, Some(mutation));
            matches!(run(program), Err(Wrong::Bytes(_)))
        };
        let caught = (0..100).find(shows);
        let seed = caught.unwrap_or_else(|| panic!("{mutation:?} was not noticed"));
        for seed in 0..=seed {
            run(Program::new(seed, false, None)).unwrap_or_else(|wrong| panic!("seed {seed}: {wrong:?}"));
        }
    }
}
