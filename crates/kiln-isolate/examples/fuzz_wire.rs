//! Feeds damaged messages to the decoders until time is up: none may panic, hang or take more memory than its message.
//!
//! `cargo run --release -p kiln-isolate --features fuzzing --example fuzz_wire -- [SECONDS [SEED]]`
//!
//! The same seed gives the same messages. A failure prints the seed and the number of the message and exits with 1.

// A tool that runs by itself has to say what it did.
#![allow(clippy::print_stdout, clippy::print_stderr)]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use kiln_isolate::fuzz_entry_points;

/// Longer than this for one message of a few hundred bytes is a hang.
const MAX_TIME_PER_MESSAGE: Duration = Duration::from_secs(5);

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1).map(|argument| argument.parse::<u64>());
    let (Ok(seconds), Ok(seed)) = (arguments.next().unwrap_or(Ok(10)), arguments.next().unwrap_or(Ok(1)))
    else {
        eprintln!("usage: fuzz_wire [SECONDS [SEED]], both whole numbers");
        return ExitCode::from(2);
    };
    let started = Instant::now();
    let mut rounds = 0u64;
    while started.elapsed() < Duration::from_secs(seconds) {
        let mut random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_add(rounds) | 1);
        let run = Instant::now();
        let outcome = catch_unwind(AssertUnwindSafe(|| examine(&mut random)));
        let what = match outcome {
            Ok(Ok(())) if run.elapsed() <= MAX_TIME_PER_MESSAGE => {
                rounds += 1;
                continue;
            }
            Ok(Ok(())) => format!("took {:.1?}", run.elapsed()),
            Ok(Err(what)) => what,
            Err(_) => "panicked".to_owned(),
        };
        eprintln!("seed {seed}, round {rounds}: {what}");
        return ExitCode::FAILURE;
    }
    println!("{rounds} rounds of damaged messages, seed {seed}: every one was read or refused");
    ExitCode::SUCCESS
}

/// One message of each kind, damaged; bytes that were never a message; and a ring full of them.
fn examine(random: &mut Random) -> Result<(), String> {
    let numbers = [(); 4].map(|()| random.number());
    let arguments: Vec<u8> = (0..random.below(40)).map(|_| random.next() as u8).collect();
    for mut message in fuzz_entry_points::messages(numbers, &arguments) {
        for _ in 0..random.below(4) {
            damage(&mut message, random);
        }
        fuzz_entry_points::read(&message);
        if !fuzz_entry_points::is_stable(&message) {
            return Err(format!("is read and written otherwise: {message:?}"));
        }
    }
    let noise: Vec<u8> = (0..256 + random.below(64)).map(|_| random.next() as u8).collect();
    fuzz_entry_points::read(&noise);
    fuzz_entry_points::use_ring(&noise, random.number(), random.number());
    Ok(())
}

fn damage(message: &mut Vec<u8>, random: &mut Random) {
    let at = random.below(message.len() as u64 + 1) as usize;
    match random.below(5) {
        0 => message.truncate(at),
        1 => message.insert(at, random.next() as u8),
        2 => {
            let piece = message.get(at..).unwrap_or_default().to_vec();
            message.extend(piece);
        }
        _ => {
            if let Some(byte) = message.get_mut(at) {
                *byte = random.next() as u8;
            }
        }
    }
}

/// A small generator, so that a seed means the same everywhere.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit.max(1)
    }

    /// A number of any size, small ones and the largest among them.
    fn number(&mut self) -> u64 {
        match self.below(4) {
            0 => self.below(16),
            1 => u64::MAX - self.below(16),
            2 => 1 << self.below(64),
            _ => self.next(),
        }
    }
}
