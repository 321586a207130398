//! Every rule about values and memory is needed: without it a planted bug is missed, or its twin is told.

use crate::planted_pairs::{PREFIXES, PlantedPair};
use kiln_ptx::exec::{Options, ValueRule};

#[test]
fn taking_any_rule_about_values_out_is_noticed() {
    let pairs = PlantedPair::all(&PREFIXES);
    let mut unnoticed = Vec::new();
    for rule in ValueRule::ALL {
        let options = Options { without_value_rule: Some(rule), ..Options::default() };
        let notices = |pair: &&PlantedPair| {
            pair.name != "heap_past_the_end"
                && (!pair.is_found("bug", &options) || pair.is_found("fixed", &options))
        };
        let noticed: Vec<&str> = pairs.iter().filter(notices).map(|pair| &*pair.name).collect();
        println!("{rule:?}: {}", noticed.join(", "));
        if noticed.is_empty() {
            unnoticed.push(rule);
        }
    }
    assert!(unnoticed.is_empty(), "no pair notices that these rules are missing: {unnoticed:?}");
}
