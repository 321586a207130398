//! Feeds damaged PTX to the reader and the executor until time is up: nothing may panic, hang, or change on the way through print, and every entry of what is still PTX
//! is launched with every check.
//!
//! `cargo run --release -p kiln-ptx --example fuzz_parse -- [SECONDS [SEED]]`
//!
//! The same seed gives the same texts. A failure prints the seed and the number of the text, saves the text beside the
//! program's working directory, and exits with 1.

// A tool that runs by itself has to say what it did.
#![allow(clippy::print_stdout, clippy::print_stderr)]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use kiln_ptx::exec::{Checks, DeviceHeap, ExecProgram, LaunchShape, Options, SimpleMemory};
use kiln_ptx::{PtxFunctionId, PtxModule};

/// What a module may keep in variables; a damaged number makes them larger than any device.
const MAX_VARIABLE_BYTES: u64 = 1 << 20;
/// Steps of a thread before a launch is ended.
const STEP_LIMIT: u64 = 2000;

/// Longer than this for one text of a few hundred kilobytes is a hang.
const MAX_TIME_PER_TEXT: Duration = Duration::from_secs(20);

const CORPUS: [&str; 12] = [
    include_str!("../tests/data/assembly.ptx"),
    include_str!("../tests/data/atomics.ptx"),
    include_str!("../tests/data/control.ptx"),
    include_str!("../tests/data/cooperative.ptx"),
    include_str!("../tests/data/elementwise.ptx"),
    include_str!("../tests/data/hopper.ptx"),
    include_str!("../tests/data/host_calls.ptx"),
    include_str!("../tests/data/pointers.ptx"),
    include_str!("../tests/data/shared.ptx"),
    include_str!("../tests/data/tensor.ptx"),
    include_str!("../tests/data/textures.ptx"),
    include_str!("../tests/data/grammar.ptx"),
];

/// Pieces that have meaning to the grammar, for insertion at any place.
const PIECES: [&str; 36] = [
    "{",
    "}",
    "(",
    ")",
    "[",
    "]",
    ",",
    ";",
    ":",
    "@",
    "@!%p1 ",
    "<",
    "<<",
    ">",
    "|",
    "+-",
    "!",
    "~",
    "?",
    "\"",
    "/*",
    "//",
    ".reg .b32 %r<4000000000>;",
    ".reg .pred p, q;",
    ".shared .align 8 .b8 s[64];",
    ".param .b64 param0;",
    "0f3F800000",
    "0xFFFFFFFFFFFFFFFF",
    "-9223372036854775808",
    ".loc 1 2 3, function_name L+4, inlined_at 1 2 3",
    "bra $L__BB0_1;",
    "call (r), f, (a, b), p;",
    "x: .branchtargets a, b;",
    ".global .b8 z[4][4] = {{1},{2,3}};",
    "\u{fc}",
    "\0",
];

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1).map(|argument| argument.parse::<u64>());
    let (Ok(seconds), Ok(seed)) = (arguments.next().unwrap_or(Ok(10)), arguments.next().unwrap_or(Ok(1)))
    else {
        eprintln!("usage: fuzz_parse [SECONDS [SEED]], both whole numbers");
        return ExitCode::from(2);
    };
    let started = Instant::now();
    let (mut texts, mut accepted, mut launched) = (0u64, 0u64, 0u64);
    while started.elapsed() < Duration::from_secs(seconds) {
        let text = damaged(&mut Random::new(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_add(texts)));
        let run = Instant::now();
        let outcome = catch_unwind(AssertUnwindSafe(|| examine(&text)));
        let slow = run.elapsed() > MAX_TIME_PER_TEXT;
        match outcome {
            Ok(Ok(examined)) if !slow => {
                accepted += u64::from(examined.is_some());
                launched += examined.unwrap_or(0);
            }
            other => {
                let what = match other {
                    Ok(Err(what)) => what,
                    Ok(Ok(_)) => format!("took {:.1?}", run.elapsed()),
                    Err(_) => "panicked".to_owned(),
                };
                eprintln!("seed {seed}, text {texts}: {what}");
                let file = format!("fuzz-parse-{seed}-{texts}.ptx");
                let saved = std::fs::write(&file, &text);
                eprintln!(
                    "{}",
                    saved
                        .map_or_else(|e| format!("cannot save {file}: {e}"), |()| format!("saved as {file}"))
                );
                return ExitCode::FAILURE;
            }
        }
        texts += 1;
    }
    println!(
        "seed {seed}: {texts} texts, {accepted} of them still PTX, {launched} launches, no panic, no hang, no difference"
    );
    ExitCode::SUCCESS
}

/// Reads, prints, reads again, analyses and launches a text: how many launches there were, none if it was not PTX, or what went wrong.
fn examine(text: &str) -> Result<Option<u64>, String> {
    let Ok(module) = PtxModule::parse(text) else { return Ok(None) };
    let printed = module.to_string();
    let again = PtxModule::parse(&printed).map_err(|e| format!("what was printed does not parse: {e}"))?;
    if again != module {
        return Err("what was printed parses to another module".to_owned());
    }
    for id in 0..module.functions().len() as u32 {
        let _ = module.facts(PtxFunctionId(id));
    }
    launch_all(module).map(Some)
}

/// Launches every entry; how many took the launch.
fn launch_all(module: PtxModule) -> Result<u64, String> {
    let program = ExecProgram::new(module);
    let mut launched = 0;
    for entry in program.entries() {
        let mut memory = SimpleMemory::new();

        let globals: Vec<u64> =
            program.variables().iter().map(|v| memory.allocate(v.bytes.min(MAX_VARIABLE_BYTES))).collect();
        let buffer = memory.allocate_with(&[1; 4096]);
        let arguments =
            buffer.to_le_bytes().repeat(entry.parameter_bytes().min(1 << 16).div_ceil(8) as usize);
        let shape = LaunchShape {
            grid: [2, 1, 1],
            block: [33, 1, 1],
            dynamic_shared_bytes: 256,
            cooperative: false,
            cluster: None,
            non_portable_cluster: false,
        };
        let heap = DeviceHeap::new(1 << 16);
        let options =
            Options { checks: Checks::ALL, step_limit: STEP_LIMIT, heap: Some(&heap), ..Options::default() };
        // A refusal is an answer.
        let Ok(outcome) = entry.launch(&shape, &arguments, &globals, &memory, &options) else { continue };
        if outcome.findings.iter().any(|finding| finding.to_string().is_empty()) {
            return Err("a finding has no words".to_owned());
        }
        if outcome.fault.is_some() && outcome.findings.is_empty() {
            return Err("a launch ends with a fault that no finding explains".to_owned());
        }
        launched += 1;
    }
    Ok(launched)
}

/// A text of the corpus with one to eight places damaged.
fn damaged(random: &mut Random) -> String {
    let mut text = random.pick(&CORPUS).as_bytes().to_vec();
    for _ in 0..=random.below(8) {
        damage(&mut text, random);
    }
    String::from_utf8_lossy(&text).into_owned()
}

fn damage(text: &mut Vec<u8>, random: &mut Random) {
    let at = random.below(text.len() + 1);
    let end = (at + random.below(64)).min(text.len());
    match random.below(13) {
        0 => text.truncate(at),
        1 => drop(text.drain(at..end)),
        2 => drop(text.splice(at..at, random.pick(&PIECES).bytes())),
        3 => drop(text.splice(at..end, random.pick(&PIECES).bytes())),
        4 => {
            let copy = text[at..end].to_vec();
            let to = random.below(text.len() + 1);
            drop(text.splice(to..to, copy));
        }
        5 => {
            let other = random.pick(&CORPUS).as_bytes();
            let from = random.below(other.len());
            let until = (from + random.below(400)).min(other.len());
            drop(text.splice(at..at, other[from..until].iter().copied()));
        }
        6 => {
            // One piece over and over: nesting, long lists, long numbers.
            let piece = random.pick(&PIECES).repeat(1 + random.below(2000));
            drop(text.splice(at..at, piece.bytes()));
        }
        7..=10 => {
            // Whole lines moved, copied or dropped often leave PTX.
            let (start, stop) = line_around(text, at);
            let line = text[start..stop].to_vec();
            if random.below(2) == 0 {
                drop(text.drain(start..stop));
            }
            if random.below(2) == 0 {
                let near = random.below(text.len() + 1);
                let (to, _) = line_around(text, near);
                drop(text.splice(to..to, line));
            }
        }
        _ => {
            if let Some(byte) = text.get_mut(at) {
                *byte = random.below(256) as u8;
            }
        }
    }
}

/// The line that contains the byte at `at`, with its end.
fn line_around(text: &[u8], at: usize) -> (usize, usize) {
    let start = text[..at].iter().rposition(|b| *b == b'\n').map_or(0, |newline| newline + 1);
    let stop = text[at..].iter().position(|b| *b == b'\n').map_or(text.len(), |length| at + length + 1);
    (start, stop)
}

/// A small generator of our own, so that a seed means the same texts on every machine.
struct Random(u64);

impl Random {
    fn new(seed: u64) -> Self {
        Self(seed ^ 0xD1B5_4A32_D192_ED03)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit.max(1) as u64) as usize
    }

    fn pick<'a>(&mut self, items: &[&'a str]) -> &'a str {
        items[self.below(items.len())]
    }
}
