//! What each kind of fault costs, with and without a standby, on the simulated device and on CUDA where there is one
//! (`KILN_REQUIRE_GPU=1` makes its absence a failure). `KILN_FAULTS` says how many faults in a row there are.
//!
//! What is measured is printed as a table; what is asserted is what was lost and kept, byte for byte.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    dead_code,
    reason = "a test stops at the first surprise, and uses its part of the rig"
)]

#[path = "../rig/mod.rs"]
mod rig;
mod theatre;

use std::io::Write;
use std::time::Duration;

use kiln_driver::{DevicePlace, Driver, DriverExt, Protection};
use kiln_isolate::{Cause, Checksum};
use rig::held::Held;
use theatre::{BLOCKS, Ending, Outcome, Scene, Stage, WRITTEN};

/// The word a kernel wrote, and the one it was to write across its end.
const WRITTEN_BYTES: usize = 8;
/// Free memory of a device others use as well is not the same twice.
const MEMORY_SLACK_BYTES: u64 = 64 << 20;

#[test]
#[ignore = "helper process"]
fn worker() {
    theatre::worker();
}

/// Runs a test if there is such a device; otherwise it counts as skipped.
fn on(stage: Stage, standby: bool, play: impl FnOnce(Scene)) {
    let _turn = rig::turn();
    let before = Held::settled();
    let required = std::env::var_os("KILN_REQUIRE_GPU").is_some_and(|value| value == "1");
    match Scene::open(stage, standby) {
        Some(scene) => play(scene),
        None if required => panic!("there is no CUDA device"),
        None => {
            if let Some(path) = std::env::var_os("KILN_SKIP_LOG").filter(|path| !path.is_empty()) {
                let mut file = std::fs::OpenOptions::new().create(true).append(true).open(path).unwrap();
                writeln!(file, "kiln-isolate faults on CUDA: there is no device").unwrap();
            }
        }
    }
    assert_eq!(Held::settled(), before, "nothing is left");
}

/// Past the harness, which would keep it to itself.
fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}").unwrap();
}

fn milliseconds(time: Duration) -> String {
    format!("{:.2}", time.as_secs_f64() * 1e3)
}

/// Every byte of a block, but for what its kernel wrote where it did. A device does a store that is not aligned where it would be, and then
/// faults.
fn check_block(scene: &Scene, block: u64, is_written: bool) {
    let (found, expected) = (scene.download(block), &scene.contents[block as usize]);
    let differing: Vec<_> = (0..found.len()).filter(|at| found[*at] != expected[*at]).collect();
    let may_differ = if is_written { WRITTEN_BYTES } else { 0 };
    let (head, wanted) = (&found[..16], &expected[..16]);
    let last = differing.last().copied().unwrap_or(0);
    assert!(
        differing.iter().all(|at| *at < may_differ),
        "block {block}: {} bytes differ, the first at {:?}, the last at {last}; {head:02x?} instead of {wanted:02x?}",
        differing.len(),
        differing.first()
    );
}

fn check_outcome(
    scene: &Scene,
    ending: Ending,
    standby: bool,
    outcome: &Outcome,
    direct: kiln_driver::MemoryId,
) {
    let takeover = &outcome.takeover;
    let code = outcome.code.unwrap();
    assert!(ending.codes().contains(&code), "{ending:?}: {code:?}");
    let expected_cause = match ending {
        Ending::Endless => matches!(takeover.cause, Cause::Hung { .. }),
        Ending::Killed => matches!(takeover.cause, Cause::Ended(_)),
        _ => matches!(takeover.cause, Cause::Fault(_)),
    };
    assert!(expected_cause, "{:?}", takeover.cause);
    assert_eq!(takeover.standby, standby);
    assert_eq!(takeover.left.is_empty(), standby, "ahead: {}; left: {}", takeover.ahead, takeover.left);
    let unfinished: Vec<_> = takeover.unfinished.iter().map(|unfinished| unfinished.stream).collect();
    assert_eq!(unfinished, [scene.stream]);
    assert_eq!(takeover.lost_memory, [direct]);
    assert!(takeover.lost_pages.is_empty() && takeover.lost_graphs.is_empty());
    assert_eq!(takeover.kept_bytes, (BLOCKS + 1) * scene.granule);
}

fn every_fault(stage: Stage, standby: bool) {
    on(stage, standby, |mut scene| {
        let capability = scene.device.info().capability;
        if standby {
            say(
                "| fault | standby | code | detected | kill | start | pages | hosts | code | queues | until a kernel ran | ahead | left |",
            );
            say("|---|---|---|---|---|---|---|---|---|---|---|---|---|");
        }
        for ending in Ending::ALL.into_iter().filter(|ending| ending.is_possible(stage, capability)) {
            let direct = scene.direct.id;
            let outcome = scene.suffer(ending, 0);
            check_outcome(&scene, ending, standby, &outcome, direct);
            for block in 0..BLOCKS {
                check_block(&scene, block, block == 0);
            }
            let phases = &outcome.takeover.phases;
            let times = [
                phases.kill,
                phases.start,
                phases.pages,
                phases.hosts,
                phases.code,
                phases.queues,
                outcome.recovered,
            ];
            say(&format!(
                "| {ending:?} | {standby} | {} | {} | {} | {} | {} |",
                outcome.code.unwrap(),
                milliseconds(outcome.detected),
                times.map(milliseconds).join(" | "),
                outcome.takeover.ahead,
                outcome.takeover.left
            ));
            scene.upload(0);
            scene.await_standby(standby);
        }
    });
}

/// Faults in a row in one client. The memory of the device is measured with a standby that has everything, as at first.
fn many_faults(stage: Stage, default: u32) {
    on(stage, true, |mut scene| {
        let wanted = std::env::var("KILN_FAULTS").ok().and_then(|text| text.parse().ok());
        let rounds = wanted.unwrap_or(default);
        let held = Held::now();
        let free = scene.device.memory_info().unwrap().free_bytes;
        let begun = std::time::Instant::now();
        let (mut recoveries, mut ready) = (Vec::new(), 0);
        for round in 0..rounds {
            // The next fault does not wait for the next standby, so both take their time at once.
            let outcome = scene.suffer(Ending::IllegalAddress, 0);
            recoveries.push(outcome.recovered);
            ready += u32::from(outcome.takeover.standby);
            let is_checked = round % 100 == 99 || round + 1 == rounds;
            for block in (0..BLOCKS).filter(|_| is_checked) {
                check_block(&scene, block, block == 0);
            }
            if is_checked {
                say(&format!("{} faults, {:.1} s", round + 1, begun.elapsed().as_secs_f64()));
            }
            assert_eq!(scene.device.generation(), u64::from(round) + 2);
        }
        scene.await_standby(true);
        recoveries.sort();
        say(&format!(
            "{rounds} faults in a row in {:.1} s, {ready} met a standby that was ready; until a kernel ran: median {} ms, most {} ms",
            begun.elapsed().as_secs_f64(),
            milliseconds(recoveries[recoveries.len() / 2]),
            milliseconds(*recoveries.last().unwrap()),
        ));
        let left = scene.device.memory_info().unwrap().free_bytes;
        say(&format!(
            "free memory before {free} and after {left} bytes; held before {held:?}, after {:?}",
            Held::now()
        ));
        assert!(left + MEMORY_SLACK_BYTES >= free, "{free} bytes were free, and {left} are");
        let now = Held::now();
        assert_eq!(
            (now.descriptors, now.children.len(), now.threads),
            (held.descriptors, held.children.len(), held.threads)
        );
    });
}

/// A kernel that goes astray writes over a block that is not its own, and faults.
fn wild_writes(stage: Stage) {
    on(stage, true, |mut scene| {
        let sealed: Vec<_> = (0..BLOCKS).map(|block| scene.sums(block)).collect();
        for (block, sums) in sealed.iter().enumerate() {
            assert_eq!(*sums, Checksum::of(&scene.contents[block]), "the device sums as the host does");
        }
        // Nothing declares that the second block is written, so nothing but its sum can tell.
        scene.suffer(Ending::IllegalAddress, 1);
        for block in 0..BLOCKS {
            let is_same = scene.sums(block) == sealed[block as usize];
            assert_eq!(is_same, block != 1, "block {block}");
        }
        assert_eq!(scene.download(1)[..4], WRITTEN);
        scene.upload(1);
        assert_eq!(scene.sums(1), sealed[1]);

        // Read-only, the write itself is the fault, and the bytes stay what they were; also in the next worker.
        let (offset, bytes) = (2 * scene.granule, scene.granule);
        scene.device.protect(scene.range.id, offset, bytes, Protection::Read).unwrap();
        scene.await_standby(true);
        for _ in 0..2 {
            scene.suffer(Ending::IllegalAddress, 2);
            check_block(&scene, 2, false);
            assert_eq!(scene.sums(2), sealed[2]);
            scene.await_standby(true);
        }
        // It is written again when it is allowed to be.
        scene.device.protect(scene.range.id, offset, bytes, Protection::ReadWrite).unwrap();
        let place = DevicePlace::from(scene.range.id).plus(offset);
        scene.device.fill(scene.stream, place, 5, bytes).unwrap();
        scene.device.synchronize(scene.stream).unwrap();
        assert!(scene.download(2).iter().all(|byte| *byte == 5));
    });
}

#[test]
fn every_fault_with_a_standby() {
    every_fault(Stage::Simulated, true);
}

#[test]
fn every_fault_without_a_standby() {
    every_fault(Stage::Simulated, false);
}

#[test]
fn many_faults_in_a_row_leave_nothing() {
    many_faults(Stage::Simulated, 25);
}

#[test]
fn wild_writes_are_stopped_or_found() {
    wild_writes(Stage::Simulated);
}

#[test]
fn every_fault_on_cuda_with_a_standby() {
    every_fault(Stage::Cuda, true);
}

#[test]
fn every_fault_on_cuda_without_a_standby() {
    every_fault(Stage::Cuda, false);
}

#[test]
fn many_faults_in_a_row_on_cuda_leave_nothing() {
    many_faults(Stage::Cuda, 100);
}

#[test]
fn wild_writes_on_cuda_are_stopped_or_found() {
    wild_writes(Stage::Cuda);
}
