//! Which blocks are lost: never one that unfinished work could not have written, and never one kept with other bytes than it had.

use std::sync::Arc;

use kiln::{DeviceRuntime, GpuRef, Kernel, PostMortem, Stale, Stream, Ticket};

use crate::{kernels, rig};

const BLOCKS: usize = 8;
const STREAMS: usize = 3;
const STEPS: usize = 24;

/// A generator that needs no crate.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % sides
    }
}

/// A block and what it must hold once everything that was submitted is done.
struct Slot {
    buffer: GpuRef<u32>,
    value: u32,
    /// The last write, unless it was waited for.
    unfinished: Option<Ticket>,
}

struct Scenario {
    gpu: DeviceRuntime,
    copy: Kernel,
    spoil: Kernel,
    streams: Vec<Stream>,
    slots: Vec<Slot>,
    dice: Dice,
    next: u32,
    lost: usize,
    kept_unfinished: usize,
}

/// How a worker ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum End {
    Killed,
    Fault,
}

impl Scenario {
    fn new(seed: u64) -> Self {
        let gpu = rig::open(seed, rig::process());
        let load = |name| gpu.kernel(kernels::PTX, name).unwrap();
        let (copy, spoil) = (load("copy"), load("illegal"));
        let streams = (0..STREAMS).map(|_| gpu.stream().unwrap()).collect();
        let mut scenario = Self {
            gpu,
            copy,
            spoil,
            streams,
            slots: Vec::new(),
            dice: Dice(seed),
            next: 0,
            lost: 0,
            kept_unfinished: 0,
        };
        for at in 0..BLOCKS {
            let slot = scenario.fresh(if at % 2 == 0 { 1 } else { 5000 });
            scenario.slots.push(slot);
        }
        scenario
    }

    fn fresh(&mut self, len: usize) -> Slot {
        self.next += 1;
        let buffer = self.gpu.allocate(len).unwrap();
        let unfinished = Some(buffer.fill(self.next).unwrap());
        Slot { buffer, value: self.next, unfinished }
    }

    fn step(&mut self) {
        let (block, from) = (self.dice.roll(BLOCKS), self.dice.roll(BLOCKS));
        let stream = self.streams[self.dice.roll(STREAMS)].clone();
        self.next += 1;
        let value = self.next;
        let source = (self.slots[from].buffer.clone(), self.slots[from].value);
        let same_len = block != from && source.0.len() == self.slots[block].buffer.len();
        let kind = self.dice.roll(6);
        let slot = &mut self.slots[block];
        match kind {
            0 | 1 => {
                let data = vec![value; slot.buffer.len()];
                slot.unfinished = Some(slot.buffer.upload_on(&stream, &data).unwrap());
                slot.value = value;
            }
            2 if same_len => {
                slot.unfinished = Some(slot.buffer.copy_from_on(&stream, &source.0).unwrap());
                slot.value = source.1;
            }
            3 if same_len && slot.buffer.len() == 1 => {
                let mut launch = self.gpu.launch(&self.copy);
                launch.on(&stream).read(&source.0).write(&slot.buffer);
                // SAFETY: the kernel touches one element of each.
                slot.unfinished = Some(unsafe { launch.submit() }.unwrap());
                slot.value = source.1;
            }
            4 => {
                if let Some(ticket) = slot.unfinished.take() {
                    ticket.wait().unwrap();
                }
            }
            5 => {
                let len = slot.buffer.len();
                self.slots[block] = self.fresh(len);
            }
            _ => {}
        }
    }

    /// Ends the worker, and holds what became of every block against what was known.
    fn end(&mut self, end: End) {
        let generation = self.gpu.generation().0;
        let report = match end {
            End::Killed => rig::kill(&self.gpu),
            End::Fault => {
                let victim = self.gpu.zeros::<u32>(1).unwrap();
                let mut launch = self.gpu.launch(&self.spoil);
                launch.on(&self.streams[0]).write(&victim);
                // SAFETY: it is to fault.
                unsafe { launch.submit() }.unwrap();
                let report = rig::recovered(&self.gpu, generation);
                assert_eq!(victim.access(), Err(Stale::Lost));
                assert_eq!(report.cause.kernel(), Some("illegal"), "{report}");
                report
            }
        };
        assert_eq!(report.generation.0, generation + 1);
        for at in 0..self.slots.len() {
            self.judge(at, &report);
        }
    }

    fn judge(&mut self, at: usize, report: &Arc<PostMortem>) {
        let slot = &mut self.slots[at];
        let id = slot.buffer.block_id();
        let record = report.blocks.iter().find(|record| record.block == id).unwrap();
        match slot.buffer.access() {
            Ok(_) => {
                assert!(!record.standing.is_lost(), "{report}");
                let kept = slot.buffer.download().unwrap();
                assert!(kept.iter().all(|value| *value == slot.value), "{id} holds {}\n{report}", kept[0]);
                if let Some(ticket) = slot.unfinished.take() {
                    ticket.wait().unwrap();
                    self.kept_unfinished += 1;
                }
            }
            Err(stale) => {
                assert_eq!(stale, Stale::Lost);
                assert!(record.standing.is_lost(), "{report}");
                let ticket = slot.unfinished.take();
                let ticket = ticket.unwrap_or_else(|| panic!("{id} was waited for\n{report}"));
                assert!(ticket.wait().unwrap_err().is_sticky(), "its work has failed");
                assert!(slot.buffer.loss().is_some() && slot.buffer.download().is_err());
                self.lost += 1;
                let len = slot.buffer.len();
                self.slots[at] = self.fresh(len);
            }
        }
    }
}

fn survive(seed: u64, end: End) -> (usize, usize) {
    let mut scenario = Scenario::new(seed);
    // Ended after one step, after two, and so on.
    for steps in 0..STEPS {
        (0..steps).for_each(|_| scenario.step());
        scenario.end(end);
    }
    (scenario.lost, scenario.kept_unfinished)
}

#[test]
fn a_worker_killed_after_every_step_costs_what_was_not_known_to_be_done() {
    let (mut lost, mut kept) = (0, 0);
    for seed in 0..3 {
        let (seed_lost, seed_kept) = survive(seed, End::Killed);
        (lost, kept) = (lost + seed_lost, kept + seed_kept);
    }
    assert!(lost > 0, "something was under way");
    eprintln!("{lost} blocks lost, {kept} kept because their unwaited write was known to be done");
}

#[test]
fn a_fault_after_every_step_costs_what_was_not_known_to_be_done() {
    for seed in 10..12 {
        let (lost, _) = survive(seed, End::Fault);
        assert!(lost > 0, "something was under way");
    }
}
