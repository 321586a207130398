//! Random programs give the same on the interpreter and, as PTX, on the executor, to the bit.
//!
//! `KILN_IR_PROGRAMS=1000000` runs more of them, `KILN_IR_SEED=7` begins with another one. A failure prints the seed and
//! the program.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::generate::examine::examine;
use crate::generate::generate;
use crate::generate::inventory::Inventory;

/// Programs if `KILN_IR_PROGRAMS` is not set.
const PROGRAMS: u64 = 20_000;

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

#[test]
fn random_programs_hold_every_statement_and_every_operation_on_every_type() {
    let mut inventory = Inventory::default();
    (1..=PROGRAMS).for_each(|seed| inventory.add(&generate(seed).0));
    assert_eq!(inventory.missing(), [""; 0], "the first {PROGRAMS} programs lack these");
}
