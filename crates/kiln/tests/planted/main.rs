//! Every planted bug is found within four seeds, where it is and as what it is; its fixed twin is clean.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test stops at the first surprise"
)]

mod pair;
mod stage;

use kiln_ptx::exec::Checks;
use pair::Pair;
use stage::Found;

/// The seeds under which a bug must show itself, and its twin must not.
const SEEDS: std::ops::Range<u64> = 0..4;

/// Why a pair fails, if it does.
fn judge(pair: &Pair) -> Result<(), String> {
    let all = |kernel: &str| -> Vec<Found> {
        SEEDS
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
    assert!(pairs.len() >= 60, "{} pairs", pairs.len());
    let mut failures = Vec::new();
    for pair in &pairs {
        if let Err(why) = judge(pair) {
            failures.push(format!("{}: {why}", pair.name));
        }
    }
    assert!(failures.is_empty(), "{} of {} pairs:\n{}", failures.len(), pairs.len(), failures.join("\n"));
}

#[test]
fn every_twin_is_clean_with_the_checks_a_runtime_has_by_default() {
    for pair in Pair::all() {
        let found = stage::run(&pair, &format!("fixed_{}", pair.name), 1, Checks::default());
        assert!(found.is_empty(), "{}: {found:#?}", pair.name);
    }
}
