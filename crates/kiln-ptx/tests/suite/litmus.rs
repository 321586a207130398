//! Small random programs: the race check says what the memory model says, worked out another way.
//!
//! Each thread logs what it will do next, so the order in which memory was accessed is known. From it the oracle builds the
//! happens-before relation as PTX defines it, edge by edge, and closes it; no clocks, no shortcuts.

use std::fmt::Write;
use std::sync::{Mutex, PoisonError};

use crate::litmus_oracle::{Event, first_race};
use kiln_ptx::PtxModule;
use kiln_ptx::exec::{
    Cells, Declared, ExecFindingKind, ExecOutcome, ExecProgram, GlobalMemory, LaunchShape, Miss, MissKind,
    Options, Span, Words,
};

const BASE: u64 = 0x1_0000_0000;
const LOG: u64 = 1024;
const LOG_BYTES: u64 = 256;
const BYTES: u64 = 4096;

/// What a thread does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Load { place: u64, order: Order, wide: bool },
    Store { place: u64, order: Order, wide: bool },
    Update { place: u64, order: Order, wide: bool },
    Fence { wide: bool },
    Barrier,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    Weak,
    Relaxed,
    Acquire,
    Release,
    Both,
}

/// Where the threads are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Placed {
    Blocks,
    Warps,
    Lanes,
}

pub(crate) struct Litmus {
    pub(crate) threads: Vec<Vec<Step>>,
    pub(crate) placed: Placed,
}

struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

fn litmus(random: &mut Random) -> Litmus {
    let placed = [Placed::Blocks, Placed::Warps, Placed::Lanes][random.below(3) as usize];
    let count = 2 + random.below(3) as usize;
    let mut threads = vec![Vec::new(); count];
    let phases = if placed == Placed::Blocks { 1 } else { 1 + random.below(3) };
    for phase in 0..phases {
        for thread in &mut threads {
            if phase > 0 {
                thread.push(Step::Barrier);
            }
            // Blocks have no barriers; they get more steps instead.
            let most = if placed == Placed::Blocks { 7 } else { 4 };
            for _ in 0..random.below(most) {
                thread.push(step(random));
            }
        }
    }
    Litmus { threads, placed }
}

fn step(random: &mut Random) -> Step {
    let place = random.below(3);
    // The last place is a flag most of the time, and the scope mostly wide enough.
    let weak = if place == 2 { random.below(8) == 0 } else { random.below(3) != 0 };
    let wide = random.below(6) != 0;
    let pick = |random: &mut Random, orders: &[Order]| {
        if weak { Order::Weak } else { orders[random.below(orders.len() as u64) as usize] }
    };
    match random.below(8) {
        0..=2 => Step::Load { place, order: pick(random, &[Order::Relaxed, Order::Acquire]), wide },
        3 | 4 => Step::Store { place, order: pick(random, &[Order::Relaxed, Order::Release]), wide },
        5 => {
            let orders = [Order::Relaxed, Order::Acquire, Order::Release, Order::Both];
            Step::Update { place, order: orders[random.below(4) as usize], wide }
        }
        _ => Step::Fence { wide },
    }
}

impl Litmus {
    /// As PTX; the places lie in `space`.
    fn text(&self, space: &str) -> String {
        let mut text = String::from(
            ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 data) {
             .shared .align 16 .b8 s[64];
             .reg .pred %p; .reg .b32 %r, %v, %me; .reg .b64 %data, %at;
             ld.param.u64 %data, [data]; mov.u32 %v, 0;\n",
        );
        let (register, step) = match self.placed {
            Placed::Blocks => ("%ctaid.x", 1),
            Placed::Warps => ("%tid.x", 32),
            Placed::Lanes => ("%tid.x", 1),
        };
        text += if space == "shared" { "mov.u64 %at, s;\n" } else { "mov.u64 %at, %data;\n" };
        writeln!(text, "mov.u32 %me, {register};").unwrap();
        for at in 0..self.threads.len() {
            writeln!(text, "setp.eq.u32 %p, %me, {}; @%p bra T{at};", at * step).unwrap();
        }
        text += "exit;\n";
        for (at, steps) in self.threads.iter().enumerate() {
            writeln!(text, "T{at}:").unwrap();
            for (number, step) in steps.iter().enumerate() {
                let log = LOG + at as u64 * LOG_BYTES + number as u64 * 4;
                if !matches!(step, Step::Fence { .. } | Step::Barrier) {
                    writeln!(text, "st.global.u32 [%data+{log}], {};", number + 1).unwrap();
                }
                writeln!(text, "{}", self.instruction(*step, space, at as u64 * 100 + number as u64 + 1))
                    .unwrap();
            }
            text += "exit;\n";
        }
        text + "}"
    }

    fn instruction(&self, step: Step, space: &str, value: u64) -> String {
        let words = |order: Order, wide: bool| match order {
            Order::Weak => String::new(),
            order => {
                let order = match order {
                    Order::Acquire => "acquire",
                    Order::Release => "release",
                    Order::Both => "acq_rel",
                    _ => "relaxed",
                };
                format!(".{order}.{}", if wide { "gpu" } else { "cta" })
            }
        };
        match step {
            Step::Load { place, order, wide } => {
                format!("ld{}.{space}.u32 %r, [%at+{}];", words(order, wide), place * 8)
            }
            Step::Store { place, order, wide } => {
                format!("st{}.{space}.u32 [%at+{}], {value};", words(order, wide), place * 8)
            }
            Step::Update { place, order, wide } => {
                format!("atom{}.{space}.add.u32 %r, [%at+{}], 1000;", words(order, wide), place * 8)
            }
            Step::Fence { wide } => format!("fence.acq_rel.{};", if wide { "gpu" } else { "cta" }),
            Step::Barrier if self.placed == Placed::Lanes => {
                format!("bar.warp.sync {};", (1u32 << self.threads.len()) - 1)
            }
            Step::Barrier => "barrier.sync 0;".to_owned(),
        }
    }

    fn run(&self, space: &str, seed: u64) -> (ExecOutcome, Vec<(u64, Touched)>) {
        let program = ExecProgram::new(PtxModule::parse(&self.text(space)).unwrap());
        let memory = Recorder { words: Words::zeroed(BYTES), touched: Mutex::default() };
        let count = self.threads.len() as u32;
        let shape = match self.placed {
            Placed::Blocks => LaunchShape::linear(count, 1),
            Placed::Warps => LaunchShape::linear(1, 32 * (count - 1) + 1),
            Placed::Lanes => LaunchShape::linear(1, count),
        };
        let options = Options { seed, ..Options::default() };
        let outcome =
            program.entry("k").unwrap().launch(&shape, &BASE.to_le_bytes(), &[], &memory, &options).unwrap();
        let touched = memory.touched.into_inner().unwrap_or_else(PoisonError::into_inner);
        (outcome, touched)
    }

    /// The accesses in the order they were made; `None` where two threads had announced the same.
    fn events(&self, touched: &[(u64, Touched)]) -> Option<Vec<Event>> {
        let mut next: Vec<Option<usize>> = vec![None; self.threads.len()];
        let mut events = Vec::new();
        for (offset, kind) in touched {
            if *offset >= LOG {
                let (thread, number) = ((offset - LOG) / LOG_BYTES, (offset - LOG) % LOG_BYTES / 4);
                next[thread as usize] = Some(number as usize);
                continue;
            }
            let fits = |(thread, number): (usize, usize)| match self.threads[thread][number] {
                Step::Load { place, .. } => place * 8 == *offset && *kind == Touched::Read,
                Step::Store { place, .. } => place * 8 == *offset && *kind == Touched::Write,
                Step::Update { place, .. } => place * 8 == *offset && *kind == Touched::Update,
                _ => false,
            };
            let announced = next.iter().enumerate().filter_map(|(thread, number)| Some((thread, (*number)?)));
            let fitting: Vec<(usize, usize)> = announced.filter(|at| fits(*at)).collect();
            let [(thread, number)] = fitting[..] else { return None };
            next[thread] = None;
            events.push(Event { thread, number });
        }
        Some(events)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Touched {
    Read,
    Write,
    Update,
}

struct Recorder {
    words: Words,
    touched: Mutex<Vec<(u64, Touched)>>,
}

impl Recorder {
    fn note(&self, offset: u64, kind: Touched) {
        self.touched.lock().unwrap_or_else(PoisonError::into_inner).push((offset, kind));
    }
}

impl Cells for Recorder {
    fn load(&self, offset: u64, bytes: u32) -> u64 {
        self.note(offset, Touched::Read);
        self.words.load(offset, bytes)
    }

    fn peek(&self, offset: u64, bytes: u32) -> u64 {
        self.words.load(offset, bytes)
    }

    fn store(&self, offset: u64, bytes: u32, value: u64) {
        self.note(offset, Touched::Write);
        self.words.store(offset, bytes, value);
    }

    fn update(&self, offset: u64, bytes: u32, next: &mut dyn FnMut(u64) -> u64) -> u64 {
        self.note(offset, Touched::Update);
        self.words.update(offset, bytes, next)
    }
}

impl GlobalMemory for Recorder {
    fn span(&self, address: u64) -> Option<Span<'_>> {
        let span = Span {
            start: BASE,
            end: BASE + BYTES,
            origin: BASE,
            writable: true,
            declared: Declared::ReadWrite,
            cells: self,
        };
        (BASE..BASE + BYTES).contains(&address).then_some(span)
    }

    fn miss(&self, _: u64, _: u64) -> Miss {
        Miss { kind: MissKind::OutOfBounds, near: String::new() }
    }
}

/// The place of the first race that was told.
fn told(outcome: &ExecOutcome, base: u64) -> Option<u64> {
    assert_eq!(outcome.fault, None, "{:#?}", outcome.findings);
    outcome.findings.first().map(|finding| match &finding.kind {
        ExecFindingKind::Race { access, .. } => (access.address - base) / 8,
        kind => panic!("{kind}"),
    })
}

#[test]
fn the_race_check_agrees_with_the_memory_model() {
    let mut random = Random(20);
    let (mut judged, mut racy) = ([0u32; 3], 0u32);
    for program in 0..6000 {
        let litmus = litmus(&mut random);
        for seed in [0, 1 + random.below(1000)] {
            let (outcome, touched) = litmus.run("global", seed);
            let Some(events) = litmus.events(&touched) else { continue };
            let expected = first_race(&litmus, &events);
            let found = told(&outcome, BASE);
            let show = || {
                format!(
                    "program {program} seed {seed}: {:?}\n{:#?}\n{events:?}\n{}",
                    litmus.placed,
                    litmus.threads,
                    litmus.text("global")
                )
            };
            assert_eq!(found, expected, "{}", show());
            if litmus.placed != Placed::Blocks {
                let shared = litmus.run("shared", seed).0;
                assert_eq!(told(&shared, 0), expected, "shared, {}", show());
            }
            judged[litmus.placed as usize] += 1;
            racy += u32::from(expected.is_some());
        }
    }
    // The programs are worth judging: all kinds, and neither nearly all racing nor nearly none.
    let all: u32 = judged.iter().sum();
    assert!(judged.iter().all(|count| *count > 2000), "{judged:?}");
    assert!(racy > all / 5 && racy < all * 9 / 10, "{racy} of {all}");
}
