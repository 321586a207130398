//! Planted bugs: each is found, by the first seed and by exploring, and its correct twin gives no report.

use kiln_driver::{Driver, MemoryRequest};
use kiln_sim::{ExploreCoverage, FindingKind, Machine, Mode, Schedule, explore};

use crate::rig::{Rig, config};

mod accesses;
mod edges;
mod libraries;
mod library_calls;
mod lifetimes;

const SEEDS: u64 = 1_000;
const CORRECT_SEEDS: u64 = 200;
const EXPLORED_RUNS: u64 = 20_000;

/// Runs a program with its bug and without.
pub(crate) fn check(kind: FindingKind, program: impl Fn(Rig, bool)) {
    check_on(kind, config, |machine, broken| program(Rig::new(machine, 3), broken));
}

pub(crate) fn check_on(
    kind: FindingKind,
    config: impl Fn(u64) -> kiln_sim::MachineConfig,
    program: impl Fn(&Machine, bool),
) {
    let run = |config: kiln_sim::MachineConfig, broken: bool| {
        let machine = Machine::new(config);
        program(&machine, broken);
        machine.finish()
    };
    let found = |seed: &u64| run(config(*seed), true).count(&kind) > 0;
    let first = (0..SEEDS).find(found).unwrap_or_else(|| panic!("{kind:?} was not found in {SEEDS} seeds"));
    assert_eq!(first, 0, "the order is arithmetic, so every seed shows it");
    assert!((1..20).all(|seed| found(&seed)));

    for seed in 0..CORRECT_SEEDS {
        let report = run(config(seed), false);
        assert!(report.is_clean(), "{report}");
    }

    let seen = explore(config(0), EXPLORED_RUNS, |machine| program(machine, true));
    assert_eq!(seen.verdict, ExploreCoverage::Complete, "{} runs", seen.runs);
    assert_eq!(seen.runs_with_findings, seen.runs);
    let finding = seen.findings.iter().find(|finding| finding.kind == kind).expect("found by exploring");
    let Mode::Scheduled(Schedule(_)) = &finding.repeat else { panic!("{:?}", finding.repeat) };
    let again = run(config(0).mode(finding.repeat.clone()), true);
    assert!(again.count(&kind) > 0, "the schedule of a finding shows it again: {finding}");
    let seen = explore(config(0), EXPLORED_RUNS, |machine| program(machine, false));
    assert_eq!(
        (seen.verdict, seen.runs_with_findings),
        (ExploreCoverage::Complete, 0),
        "{:?}",
        seen.findings
    );
}

/// Lets the device work, without the host learning of it.
pub(crate) fn let_run(rig: &Rig, commands: usize) {
    while rig.machine.timeline().len() < commands {
        rig.device.clock().sleep(std::time::Duration::from_millis(1));
    }
}

#[test]
fn a_finding_says_who_what_where_and_how_to_see_it_again() {
    let rig = Rig::seeded(7, 2);
    let x = rig.device.allocate(MemoryRequest::Direct { bytes: 64 }).unwrap();
    rig.write(0, x, 1);
    rig.read(1, x);
    let report = { rig.machine.clone() }.finish();
    let race = report.findings.iter().find(|finding| finding.kind.is_race()).unwrap();
    assert_eq!(
        race.to_string(),
        "read after write without an order: launch read (device 0 stream:1.1 submission 1) reads bytes 0..64 of \
         memory:0.1 (at 0x700000000000), and nothing orders it after launch write (device 0 stream:0.1 submission 1), \
         which writes them; let the later stream wait for an event the earlier one signals after this, or wait on the \
         host in between. Repeat with seed 7."
    );
    assert!(report.to_string().contains("found"), "{report}");
}
