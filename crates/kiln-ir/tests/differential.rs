//! Random programs give the same on the interpreter and, as PTX, on the executor, to the bit.
//!
//! `KILN_IR_PROGRAMS=1000000` runs more of them, `KILN_IR_SEED=7` begins with another one. A failure prints the seed and
//! the program.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test stops at the first surprise"
)]

mod generate;
mod rig;

use std::sync::atomic::{AtomicU64, Ordering};

use generate::generate;
use kiln_ir::{Literal, Program, Target, ThreadOrder, Type};
use rig::{Left, interpret, simulate};

/// Programs if nobody says how many.
const PROGRAMS: u64 = 20_000;
const TARGETS: [u32; 5] = [70, 75, 80, 90, 120];

#[test]
fn random_programs_give_the_same_on_interpreter_and_executor() {
    let number = |name: &str| std::env::var(name).ok().map(|value| value.parse::<u64>().unwrap());
    let (first, count) =
        (number("KILN_IR_SEED").unwrap_or(1), number("KILN_IR_PROGRAMS").unwrap_or(PROGRAMS));
    let next = AtomicU64::new(first);
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= first + count {
                        return;
                    }
                    if let Err(what) = examine(seed) {
                        panic!("KILN_IR_SEED={seed} KILN_IR_PROGRAMS=1 shows: {what}");
                    }
                }
            });
        }
    });
}

/// Runs one program everywhere; what differs.
fn examine(seed: u64) -> Result<(), String> {
    let (program, launch) = generate(seed);
    let printed = program.to_string();
    let parsed = Program::parse(&printed).map_err(|error| format!("{error}\n{printed}"))?;
    if parsed != program {
        return Err(format!("what was printed parses to another program\n{printed}\n{parsed}"));
    }
    let (meaning, _) = interpret(&program, &launch, ThreadOrder::Ascending);
    let compare = |left: &Left, who: &str| match same(&program, &meaning, left) {
        true => Ok(()),
        false => Err(format!("{who} differs\n{printed}\n{}", describe(&program, &meaning, left))),
    };
    // A program with a race would prove nothing.
    compare(&interpret(&program, &launch, ThreadOrder::Descending).0, "the other order")?;
    compare(&interpret(&program.simplified(), &launch, ThreadOrder::Ascending).0, "the simplified program")?;
    let number = TARGETS[(seed % TARGETS.len() as u64) as usize];
    let target = Target::new(number).ok_or("no target")?;
    let left = simulate(&program, &launch, target, seed).map_err(|what| format!("{printed}\n{what}"))?;
    compare(&left, &format!("sm_{number}")).map_err(|what| format!("{what}\n{}", program.emit(target).text))
}

fn literals(ty: Type, bytes: &[u8]) -> Vec<Literal> {
    let literal = |bytes: &[u8]| {
        let mut word = [0; 8];
        word[..bytes.len()].copy_from_slice(bytes);
        Literal::new(ty, u64::from_le_bytes(word))
    };
    bytes.chunks(ty.bytes() as usize).map(literal).collect()
}

/// Equal to the bit, except that one NaN is as good as another.
fn same(program: &Program, a: &Left, b: &Left) -> bool {
    let (Left::Buffers(a), Left::Buffers(b)) = (a, b) else { return false };
    let is_same = |(a, b): (&Literal, &Literal)| {
        a == b || (a.ty().is_float() && a.as_float().is_nan() && b.as_float().is_nan())
    };
    program.buffers.iter().zip(a.iter().zip(b)).all(|(buffer, (a, b))| {
        literals(buffer.element, a).iter().zip(&literals(buffer.element, b)).all(is_same)
    })
}

fn describe(program: &Program, a: &Left, b: &Left) -> String {
    let (Left::Buffers(a), Left::Buffers(b)) = (a, b) else { return format!("{a:?}\n{b:?}") };
    let line = |(buffer, (a, b)): (&kiln_ir::Buffer, (&Vec<u8>, &Vec<u8>))| {
        let list = |bytes: &[u8]| {
            literals(buffer.element, bytes).iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
        };
        format!("{}: {}\n  not {}", buffer.name, list(a), list(b))
    };
    program
        .buffers
        .iter()
        .zip(a.iter().zip(b))
        .filter(|(_, (a, b))| a != b)
        .map(line)
        .collect::<Vec<_>>()
        .join("\n")
}
