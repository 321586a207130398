//! Every planted bug is found within four seeds, or sixteen where threads wait in loops, where it is and as what it is; its fixed twin is clean.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test stops at the first surprise"
)]

mod pair;
mod stage;
mod switches;

use kiln_ptx::exec::Checks;
use pair::Pair;
use stage::Found;

/// The seeds under which a bug must show itself, and its twin must not.
const SEEDS: std::ops::Range<u64> = 0..4;

/// The same for pairs whose threads wait for each other: blocks of seed 0 run in the order of their numbers, so that most of them do not wait there.
const SEEDS_OF_WAITS: std::ops::Range<u64> = 0..16;

/// Pairs whose threads wait for each other in loops: what they see depends on where threads are preempted.
const WAITING: [&str; 28] = [
    "blocks_counter_not_compared",
    "blocks_double_buffer",
    "blocks_fix_up",
    "blocks_flag_released_in_block",
    "blocks_flag_too_early",
    "blocks_lock_gives_up",
    "blocks_lock_released_early",
    "blocks_look_back",
    "blocks_look_back_fence",
    "blocks_release_overwritten",
    "blocks_ring",
    "blocks_ring_one_short",
    "blocks_slot_overwritten",
    "blocks_ticket_lock",
    "blocks_two_producers",
    "blocks_wait_gives_up",
    "blocks_work_queue",
    "blocks_work_queue_acquire",
    "blocks_write_before_lock",
    "global_slot_overwritten",
    "grid_barrier_counter_reset",
    "grid_barrier_one_short",
    "grid_barrier_one_short_of_many",
    "grid_barrier_sense",
    "grid_cooperative_one_short",
    "shared_slot_overwritten",
    "shared_spin_barrier_one_short",
    "warp_slot_overwritten",
];

fn waits(pair: &Pair) -> bool {
    WAITING.iter().any(|name| pair.name == *name)
}

/// Why a pair fails, if it does.
fn judge(pair: &Pair) -> Result<(), String> {
    let seeds = if waits(pair) { SEEDS_OF_WAITS } else { SEEDS };
    let all = |kernel: &str| -> Vec<Found> {
        seeds
            .clone()
            .flat_map(|seed| stage::run(pair, &format!("{kernel}_{}", pair.name), seed, Checks::ALL))
            .collect()
    };
    let (bug, fixed) = (all("bug"), all("fixed"));
    if let Some(found) = fixed.first() {
        return Err(format!("the twin is not clean: {}", found.text));
    }
    let planted = |found: &&Found| pair.expects(found.kind, &found.lines);
    if !bug.iter().any(|found| planted(&found)) {
        let texts: Vec<String> =
            bug.iter().map(|found| format!("{} {:?} {}", found.kind, found.lines, found.text)).collect();
        return Err(format!("the bug is not found, but: {texts:#?}"));
    }
    let other: Vec<&Found> = bug.iter().filter(|found| found.is_elsewhere(pair)).collect();
    match other.first() {
        Some(found) => Err(format!("found besides the bug: {} {:?} {}", found.kind, found.lines, found.text)),
        None => Ok(()),
    }
}

impl Found {
    /// Whether it is about other lines than those of the bug. At its lines a bug may be found as several kinds.
    fn is_elsewhere(&self, pair: &Pair) -> bool {
        self.lines.iter().any(|line| !pair.expected.iter().any(|(_, at)| at == line))
    }
}

#[test]
fn every_planted_bug_is_found_and_every_twin_is_clean() {
    let pairs = Pair::all();
    assert!(pairs.len() >= 105, "{} pairs", pairs.len());
    let mut failures = Vec::new();
    for pair in &pairs {
        if let Err(why) = judge(pair) {
            failures.push(format!("{}: {why}", pair.name));
        }
    }
    assert!(failures.is_empty(), "{} of {} pairs:\n{}", failures.len(), pairs.len(), failures.join("\n"));
}

#[test]
fn twins_that_wait_are_clean_in_many_orders() {
    let pairs: Vec<Pair> = Pair::all().into_iter().filter(waits).collect();
    assert_eq!(pairs.len(), WAITING.len());
    for pair in pairs {
        for seed in SEEDS_OF_WAITS.end..64 {
            let found = stage::run(&pair, &format!("fixed_{}", pair.name), seed, Checks::ALL);
            assert!(found.is_empty(), "{} with seed {seed}: {found:#?}", pair.name);
        }
    }
}

#[test]
fn every_twin_is_clean_with_the_checks_a_runtime_has_by_default() {
    for pair in Pair::all() {
        let found = stage::run(&pair, &format!("fixed_{}", pair.name), 1, Checks::default());
        assert!(found.is_empty(), "{}: {found:#?}", pair.name);
    }
}
