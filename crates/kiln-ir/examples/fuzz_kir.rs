//! Feeds damaged programs to the reader until time is up: nothing may panic, hang, or change on the way through print.
//!
//! `cargo run --release -p kiln-ir --example fuzz_kir -- [SECONDS [SEED]]`
//!
//! The same seed gives the same texts. What still is a program is simplified, emitted and interpreted for a few steps.
//! A failure prints the seed and the number of the text, saves the text, and exits with 1.

// A tool that runs by itself has to say what it did.
#![allow(clippy::print_stdout, clippy::print_stderr)]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use kiln_ir::{Extent, Interpreter, Literal, Program, PtxTarget};

/// Longer than this for one text of a few kilobytes is a hang.
const MAX_TIME_PER_TEXT: Duration = Duration::from_secs(20);

const CORPUS: [&str; 10] = [
    include_str!("../tests/kir/atomics.kir"),
    include_str!("../tests/kir/conversions.kir"),
    include_str!("../tests/kir/functions.kir"),
    include_str!("../tests/kir/grid_barrier.kir"),
    include_str!("../tests/kir/loops.kir"),
    include_str!("../tests/kir/matrix.kir"),
    include_str!("../tests/kir/shared_zero.kir"),
    include_str!("../tests/kir/traps.kir"),
    include_str!("../tests/kir/warp_reductions.kir"),
    include_str!("../tests/kir/while_loops.kir"),
];

/// Pieces that have meaning to the grammar, for insertion at any place.
const PIECES: [&str; 28] = [
    "{",
    "}",
    "(",
    ")",
    "[",
    "]",
    ";",
    "-",
    "!",
    "<<",
    "..",
    "%3",
    "$1",
    "f32#7fc00000",
    "1e309f64",
    "0xffu8",
    "18446744073709551615u64",
    "while {",
    "if true {",
    "else",
    "barrier grid;",
    "u8.from_bits(",
    "select(",
    "shared s: f32[];",
    "like x",
    "step 0",
    "\u{fc}",
    "\0",
];

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1).map(|argument| argument.parse::<u64>());
    let (Ok(seconds), Ok(seed)) = (arguments.next().unwrap_or(Ok(10)), arguments.next().unwrap_or(Ok(1)))
    else {
        eprintln!("usage: fuzz_kir [SECONDS [SEED]], both whole numbers");
        return ExitCode::from(2);
    };
    let started = Instant::now();
    let (mut texts, mut accepted) = (0u64, 0u64);
    while started.elapsed() < Duration::from_secs(seconds) {
        let text = damaged(&mut Random::new(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_add(texts)));
        let run = Instant::now();
        let outcome = catch_unwind(AssertUnwindSafe(|| examine(&text)));
        let what = match outcome {
            Ok(Ok(_)) if run.elapsed() > MAX_TIME_PER_TEXT => format!("took {:.1?}", run.elapsed()),
            Ok(Ok(program)) => {
                (texts, accepted) = (texts + 1, accepted + u64::from(program));
                continue;
            }
            Ok(Err(what)) => what,
            Err(_) => "panicked".to_owned(),
        };
        eprintln!("seed {seed}, text {texts}: {what}");
        let file = format!("fuzz-kir-{seed}-{texts}.kir");
        let saved = std::fs::write(&file, &text);
        eprintln!(
            "{}",
            saved.map_or_else(|e| format!("cannot save {file}: {e}"), |()| format!("saved as {file}"))
        );
        return ExitCode::FAILURE;
    }
    println!(
        "seed {seed}: {texts} texts, {accepted} of them still programs, no panic, no hang, no difference"
    );
    ExitCode::SUCCESS
}

/// Reads, prints, reads again, emits and runs a text; whether it was a program, or what went wrong.
fn examine(text: &str) -> Result<bool, String> {
    let Ok(program) = Program::parse(text) else { return Ok(false) };
    let printed = program.to_string();
    let again = Program::parse(&printed).map_err(|e| format!("what was printed does not parse: {e}"))?;
    if again != program {
        return Err("what was printed parses to another program".to_owned());
    }
    Program::new(program.simplified().into_draft())
        .map_err(|e| format!("simplified, it does not verify: {e}"))?;
    PtxTarget::all().step_by(5).for_each(|target| drop(program.emit(target)));
    let length = |extent: Extent| match extent {
        Extent::Static(count) if count > 1 << 16 => None,
        Extent::Static(count) => Some(count),
        _ => Some(3),
    };
    let count = |buffer: &kiln_ir::Buffer| match buffer.extent {
        Extent::Like(other) => length(program.buffers[other.0 as usize].extent),
        extent => length(extent),
    };
    let buffers = program.buffers.iter().map(|b| Some(vec![1; (count(b)? * b.element.bytes()) as usize]));
    if let Some(mut buffers) = buffers.collect::<Option<Vec<Vec<u8>>>>() {
        let scalars: Vec<Literal> = program.scalars.iter().map(|scalar| Literal::one(scalar.ty)).collect();
        let how = Interpreter { step_limit: 20_000, ..Interpreter::new([2, 1, 1]) };
        let _ = how.run(&program, &scalars, &mut buffers);
    }
    Ok(true)
}

/// A text of the corpus with one to four places damaged.
fn damaged(random: &mut Random) -> String {
    let mut text = random.pick(&CORPUS).as_bytes().to_vec();
    for _ in 0..=random.below(4) {
        damage(&mut text, random);
    }
    String::from_utf8_lossy(&text).into_owned()
}

fn damage(text: &mut Vec<u8>, random: &mut Random) {
    let at = random.below(text.len() + 1);
    let end = (at + random.below(32)).min(text.len());
    match random.below(9) {
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
            // One piece over and over: nesting, long expressions, long numbers.
            let piece = random.pick(&PIECES).repeat(1 + random.below(2000));
            drop(text.splice(at..at, piece.bytes()));
        }
        6 => {
            let lines: Vec<&[u8]> = text.split_inclusive(|byte| *byte == b'\n').collect();
            let (from, to) = (random.below(lines.len()), random.below(lines.len() + 1));
            let mut moved = lines.clone();
            let line = lines.get(from).copied().unwrap_or_default();
            moved.insert(to, line);
            *text = moved.concat();
        }
        7 => {
            // Another digit makes another number, often at an edge.
            if let Some(digit) = text.iter_mut().filter(|byte| byte.is_ascii_digit()).nth(random.below(40)) {
                *digit = b'0' + random.below(10) as u8;
            }
        }
        _ => {
            if let Some(byte) = text.get_mut(at) {
                *byte = random.below(256) as u8;
            }
        }
    }
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
