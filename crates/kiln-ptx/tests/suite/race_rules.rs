//! Every rule of the race check is needed: without it a wrong twin is missed, or a right one is told.

use crate::race_cases::{Pair, all};
use kiln_ptx::exec::{Options, RaceRule};

/// The pairs that notice that a rule does not hold.
fn noticed(rule: RaceRule) -> Vec<&'static str> {
    let without = Some(rule);
    let misses = |pair: &&'static Pair| {
        !(0..4).any(|seed| {
            let outcome =
                pair.run(pair.wrong, &Options { seed, without_rule: without, ..Options::default() });
            outcome.findings.iter().any(|finding| pair.told.is(&finding.kind))
        })
    };
    let invents = |pair: &&'static Pair| {
        (0..4).any(|seed| {
            let options = Options { seed, without_rule: without, ..Options::default() };
            !pair.run(pair.right, &options).is_clean()
        })
    };
    all().filter(|pair| misses(pair) || invents(pair)).map(|pair| pair.name).collect()
}

#[test]
fn taking_any_rule_out_is_noticed() {
    let unnoticed: Vec<RaceRule> =
        RaceRule::ALL.into_iter().filter(|rule| noticed(*rule).is_empty()).collect();
    assert!(unnoticed.is_empty(), "no pair notices that these rules are missing: {unnoticed:?}");
}
