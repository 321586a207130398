//! Whatever a program says, running it ends: with results, findings or a refusal, never with a panic.

use kiln_kernels::{Case, Random, cases};
use kiln_ptx::PtxModule;
use kiln_ptx::exec::{Checks, DeviceHeap, ExecProgram, LaunchShape, Options, SimpleMemory};

/// Types to put in place of others.
const TYPES: [&str; 16] = [
    ".u16", ".s16", ".u32", ".s32", ".u64", ".s64", ".b16", ".b32", ".b64", ".f32", ".f64", ".f16", ".f16x2",
    ".u8", ".pred", ".b128",
];
/// Words to put in place of the first of a line.
const OPERATIONS: [&str; 14] = [
    "add.cc.u32",
    "bar.sync",
    "shfl.sync.idx.b32",
    "call",
    "ret",
    "exit",
    "bra",
    "atom.add.u32",
    "ld.v4.u32",
    "st.u64",
    "mov.b64",
    "cvt.rni.s8.f64",
    "setp.lt.u32",
    "vote.sync.ballot.b32",
];

/// The text with a few lines changed.
fn damage(text: &str, random: &mut Random) -> String {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let code: Vec<usize> = (0..lines.len()).filter(|at| lines[*at].trim_end().ends_with(';')).collect();
    for _ in 0..random.within(1, 3) {
        let pick = |random: &mut Random| code[random.within(0, code.len() as i64 - 1) as usize];
        let (at, other) = (pick(random), pick(random));
        let line = lines[at].clone();
        lines[at] = match random.within(0, 7) {
            0 => String::new(),
            1 => format!("{line}\n{}", lines[other]),
            2 => lines[other].clone(),
            3 => swap_type(&line, random),
            4 => swap_number(&line, random),
            5 => line.replacen("%r", "%rd", 1),
            6 => format!("\t@%p1 {}", line.trim_start()),
            _ => swap_operation(&line, random),
        };
    }
    lines.join("\n")
}

fn swap_type(line: &str, random: &mut Random) -> String {
    let from = TYPES.iter().find(|ty| line.contains(**ty)).copied().unwrap_or(".u32");
    line.replacen(from, TYPES[random.within(0, 15) as usize], 1)
}

fn swap_number(line: &str, random: &mut Random) -> String {
    let number = [0, 1, -1, 31, 4096, i64::MAX, i64::MIN, 0x7ff1_0000_0000][random.within(0, 7) as usize];
    match line.rfind([',', '[']) {
        Some(at) if line[at..].contains(']') => {
            format!("{}[{number}]{}", &line[..at], &line[line.rfind(']').unwrap() + 1..])
        }
        Some(at) => format!("{}, {number};", &line[..at]),
        None => line.to_owned(),
    }
}

fn swap_operation(line: &str, random: &mut Random) -> String {
    let words = line.trim_start().split_once(char::is_whitespace);
    words.map_or(line.to_owned(), |(_, rest)| {
        format!("\t{} {rest}", OPERATIONS[random.within(0, 13) as usize])
    })
}

/// Runs a damaged case if it is PTX at all; whether it was.
fn survives(case: &Case, text: &str, seed: u64) -> bool {
    let Ok(module) = PtxModule::parse(text) else { return false };
    let program = ExecProgram::new(module);
    let Some(entry) = program.entry(case.entry) else { return false };
    let mut memory = SimpleMemory::new();
    let globals: Vec<u64> =
        program.variables().iter().map(|v| memory.allocate(v.bytes.min(1 << 20))).collect();
    for (at, address) in globals.iter().enumerate() {
        memory.write(*address, &program.contents(at, &globals));
    }
    let arguments = case.arguments(seed);
    let addresses: Vec<u64> =
        arguments.buffers().map(|buffer| memory.allocate_with(&buffer.data.to_bytes())).collect();
    let shape = LaunchShape {
        grid: case.shape.grid.map(|d| d.min(2)),
        block: case.shape.block,
        dynamic_shared_bytes: case.shape.shared_bytes,
        cooperative: case.shape.cooperative,
        cluster: None,
        non_portable_cluster: false,
    };
    let heap = DeviceHeap::new(1 << 16);
    let options =
        Options { checks: Checks::ALL, seed, step_limit: 2000, heap: Some(&heap), ..Options::default() };
    if let Ok(outcome) = entry.launch(&shape, &arguments.pack(&addresses), &globals, &memory, &options) {
        outcome.findings.iter().for_each(|finding| assert!(!finding.to_string().is_empty()));
        assert!(outcome.fault.is_none() || !outcome.findings.is_empty(), "a fault is explained");
    }
    true
}

#[test]
fn damaged_programs_end_without_a_panic() {
    let mut ran = 0;
    for (at, case) in cases().iter().enumerate() {
        let mut random = Random::new(at as u64);
        for seed in 0..12 {
            let text = damage(case.source.ptx, &mut random);
            ran += u32::from(survives(case, &text, seed));
        }
    }
    assert!(ran > 500, "most damage leaves PTX that can be run: {ran}");
}
