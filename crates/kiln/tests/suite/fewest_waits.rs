//! Planning costs what is needed and no more: for every small program the waits that are queued are the fewest that put everything in
//! order, found by trying them all.

use std::sync::Arc;

use kiln::{DeviceRuntime, RuntimeConfig};
use kiln_driver::Access;
use kiln_driver::layer::{CommandKind, Counting, Layered};
use kiln_sim::{Machine, MachineConfig};

const STREAMS: usize = 3;
const BUFFERS: usize = 2;

/// One step of a program: its stream, and what it does to each buffer.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Step {
    stream: usize,
    uses: [Option<Access>; BUFFERS],
}

/// Every program of so many steps that uses so many buffers. Streams are numbered as they first occur, since their names do not matter.
fn programs(len: usize, buffers: usize) -> Vec<Vec<Step>> {
    let accesses = [None, Some(Access::Read), Some(Access::Write)];
    let second = if buffers == 1 { &accesses[..1] } else { &accesses[..] };
    let uses: Vec<_> = accesses
        .iter()
        .flat_map(|first| second.iter().map(move |second| [*first, *second]))
        .filter(|uses| uses.iter().any(Option::is_some))
        .collect();
    let mut programs = vec![Vec::new()];
    for _ in 0..len {
        let longer = |program: Vec<Step>| {
            let known = program.iter().map(|step: &Step| step.stream + 1).max().unwrap_or(0);
            let uses = &uses;
            (0..STREAMS.min(known + 1))
                .flat_map(move |stream| uses.iter().map(move |uses| Step { stream, uses: *uses }))
                .map(|step| [&program[..], &[step]].concat())
                .collect::<Vec<_>>()
        };
        programs = programs.into_iter().flat_map(longer).collect();
    }
    programs
}

/// Waits that the runtime queues for a program.
fn queued_waits(program: &[Step]) -> u64 {
    let machine = Machine::new(MachineConfig::seeded(1));
    let driver = Arc::new(Layered::new(machine.device(0).unwrap(), Counting::default()));
    let gpu = DeviceRuntime::from_driver(driver.clone(), RuntimeConfig::default()).unwrap();
    let streams = [(); STREAMS].map(|()| gpu.stream().unwrap());
    let buffers = [(); BUFFERS].map(|()| gpu.allocate_on::<u32>(&streams[0], 4).unwrap());
    let before = driver.layer().counts();
    for step in program {
        let used = buffers.iter().zip(step.uses).filter_map(|(buffer, access)| Some(buffer.used_as(access?)));
        gpu.prepare_block_use(&streams[step.stream], &used.collect::<Vec<_>>()).unwrap().finish().unwrap();
    }
    driver.layer().counts().since(&before).submitted(CommandKind::Wait)
}

/// What has happened so far, over sets of steps, one bit each: no numbers and no clocks.
#[derive(Clone, Default)]
struct History {
    /// For each step, it and everything it is ordered after.
    before: Vec<u32>,
    /// Steps after which an event was recorded, because a caller waited for it.
    recorded: u32,
}

/// The fewest waits for the rest of a program, over every order in which a step can wait for what it has to come after.
fn fewest_waits(program: &[Step], history: &History) -> u64 {
    let at = history.before.len();
    let Some(step) = program.get(at) else { return 0 };
    let on_its_stream = (0..at).rev().find(|other| program[*other].stream == step.stream);
    let known = on_its_stream.map_or(0, |last| history.before[last]);
    let needed =
        (0..at).filter(|other| must_come_before(program, *other, at)).fold(0, |set, at| set | 1 << at);
    fewest_with(program, history.clone(), known, needed)
}

/// As `fewest_waits`, with some waits of the step made already.
fn fewest_with(program: &[Step], history: History, known: u32, needed: u32) -> u64 {
    let at = history.before.len();
    let missing = needed & !known;
    if missing == 0 {
        let mut next = history;
        next.before.push(known | 1 << at);
        return fewest_waits(program, &next);
    }
    (0..at)
        .filter(|step| missing & 1 << step != 0)
        .map(|step| {
            // An event that covers the step, or else a new one, which covers everything its stream did so far.
            let same = |other: &usize| program[*other].stream == program[step].stream;
            let recorded = (step..at).filter(same).find(|other| history.recorded & 1 << other != 0);
            let event = recorded.or_else(|| (step..at).rev().find(same)).unwrap();
            let mut then = history.clone();
            then.recorded |= 1 << event;
            let brought = then.before[event];
            1 + fewest_with(program, then, known | brought, needed)
        })
        .min()
        .unwrap()
}

/// A read comes after the last write, a write after that and after all reads since.
fn must_come_before(program: &[Step], first: usize, second: usize) -> bool {
    (0..BUFFERS).any(|buffer| {
        let writes = |step: usize| program[step].uses[buffer].is_some_and(|access| access.writes());
        let uses = |step: usize| program[step].uses[buffer].is_some();
        let written_since = (first + 1..second).any(writes);
        uses(first) && uses(second) && (writes(first) || writes(second)) && !written_since
    })
}

fn check(len: usize, buffers: usize) {
    let programs = programs(len, buffers);
    for program in &programs {
        let fewest = fewest_waits(program, &History::default());
        assert_eq!(queued_waits(program), fewest, "{program:?}");
    }
}

#[test]
fn every_program_of_five_steps_with_one_buffer() {
    check(5, 1);
}

#[test]
fn every_program_of_three_steps_with_two_buffers() {
    check(3, 2);
}

/// The oracle itself, on programs whose answer is plain.
#[test]
fn the_fewest_are_what_one_would_count() {
    let (read, write) = (Some(Access::Read), Some(Access::Write));
    let on = |stream, first, second| Step { stream, uses: [first, second] };
    let count = |program: &[Step]| fewest_waits(program, &History::default());
    assert_eq!(count(&[on(0, write, None), on(0, read, None), on(0, write, None)]), 0, "one stream");
    assert_eq!(count(&[on(0, write, None), on(1, None, write)]), 0, "nothing in common");
    assert_eq!(count(&[on(0, write, None), on(1, read, None), on(2, read, None)]), 2, "each reader waits");
    let both = [on(0, read, None), on(1, read, None), on(2, write, None)];
    assert_eq!(count(&both), 2, "the writer waits for each reader");
    let chain = [on(0, write, None), on(1, read, write), on(2, read, read)];
    assert_eq!(count(&chain), 2, "the second brings the first along");
}
