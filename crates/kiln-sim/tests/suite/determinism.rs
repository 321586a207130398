//! The same seed gives the same trace, byte for byte: twice, and in another process.

use std::collections::BTreeSet;
use std::process::Stdio;

use kiln_sim::{DeviceConfig, Machine};

use crate::child;
use crate::correct::program;
use crate::rig::{Rig, config};

/// A program with random work, graphs left out, a fault at the end, and a second device.
pub(crate) fn trace(seed: u64) -> String {
    let machine = Machine::new(config(seed).device(DeviceConfig::default()).device(DeviceConfig::small()));
    program(&machine, seed, 40);
    let rig = Rig::on(&machine, 1, 2);
    let x = rig.direct(64);
    rig.write(0, x, 1);
    rig.read(1, x);
    let report = machine.finish();
    assert!(!report.is_clean());
    machine.trace()
}

#[test]
fn the_same_seed_gives_the_same_trace_twice() {
    for seed in 0..200 {
        assert_eq!(trace(seed), trace(seed), "seed {seed}");
    }
}

#[test]
fn the_same_seed_gives_the_same_trace_in_another_process() {
    for seed in [0, 1, 17] {
        let there = child::run(&format!("trace {seed}"), Stdio::null()).expect("the child ends well");
        assert_eq!(there, trace(seed), "seed {seed}");
    }
}

#[test]
fn other_seeds_give_other_orders() {
    let traces: BTreeSet<String> = (0..20)
        .map(|seed| {
            let machine = Machine::new(config(seed));
            // The program is the same; only the machine's choices differ.
            program(&machine, 3, 30);
            machine.trace().lines().skip(1).collect()
        })
        .collect();
    assert!(traces.len() > 10, "{} different traces", traces.len());
}

#[test]
fn a_trace_names_nothing_of_the_host() {
    let text = trace(5);
    assert!(text.contains("device 0 Submit"), "calls are in it");
    assert!(text.contains("ran launch"), "steps are in it");
    assert!(text.contains("FOUND"), "findings are in it");
    let addresses = text.split("0x").skip(1).filter_map(|rest| rest.get(..12));
    let host: Vec<_> = addresses.filter(|address| !address.starts_with("7000")).collect();
    assert!(host.is_empty(), "{host:?}");
}

#[test]
fn a_trace_ends_at_its_limit_and_says_so() {
    let mut config = config(0);
    config.limits.trace_bytes = 2_000;
    let machine = Machine::new(config);
    program(&machine, 0, 40);
    let text = machine.trace();
    assert!(text.len() < 3_000 && text.contains("its limit is reached"), "{}", text.len());
}
