//! Every check of the executor and of the machine is needed: with it off, planted bugs are not found.

use kiln::sim::SimChecks;
use kiln_ptx::exec::Checks;

use crate::pair::Pair;
use crate::{SEEDS, stage};

/// Pairs that are missed with some checks off.
fn missed(pairs: &[Pair], checks: Checks, machine_checks: SimChecks) -> Vec<&str> {
    let is_found = |pair: &Pair| {
        let name = format!("bug_{}", pair.name);
        let found = |seed: u64| stage::run_with(pair, &name, seed, checks, machine_checks);
        SEEDS.flat_map(found).any(|found| pair.expects(found.kind, &found.lines))
    };
    pairs.iter().filter(|pair| !is_found(pair)).map(|pair| &*pair.name).collect()
}

/// Asserts that just these pairs are missed, of those whose names begin with a prefix.
#[track_caller]
fn assert_missed(prefix: &str, checks: Checks, machine_checks: SimChecks, expected: &[&str]) {
    let pairs: Vec<Pair> = Pair::all().into_iter().filter(|pair| pair.name.starts_with(prefix)).collect();
    assert_eq!(missed(&pairs, checks, machine_checks), expected);
}

#[test]
fn without_declarations_accesses_past_a_buffer_are_missed() {
    let machine = SimChecks { declarations: false, ..SimChecks::default() };
    let expected = ["memory_freed", "memory_undeclared", "memory_written_as_read"];
    assert_missed("memory_", Checks::ALL, machine, &expected);
}

#[test]
fn without_lifetimes_freed_blocks_are_missed() {
    let machine = SimChecks { lifetimes: false, ..SimChecks::default() };
    assert_missed("memory_", Checks::ALL, machine, &["memory_freed"]);
}

#[test]
fn without_the_check_for_uninitialised_memory_such_memory_is_missed() {
    let machine = SimChecks { uninitialised: false, ..SimChecks::default() };
    let executor = Checks { uninitialised: false, ..Checks::ALL };
    let all: Vec<String> = Pair::all().into_iter().map(|pair| pair.name).collect();
    let meant: Vec<&str> =
        all.iter().map(String::as_str).filter(|name| name.starts_with("undefined_")).collect();
    assert_missed("undefined_", executor, machine, &meant);
}
