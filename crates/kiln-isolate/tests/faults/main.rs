//! How long recovery from each kind of fault takes, with and without a standby, on the simulated device and on CUDA where there is one
//! (`KILN_REQUIRE_GPU=1` makes its absence a failure). `KILN_FAULTS` says how many faults in a row there are.
//!
//! Times are printed as a table; what was lost and kept is asserted, byte for byte.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    dead_code,
    reason = "a test stops at the first surprise, and uses its part of the rig"
)]

mod faulting_device;
#[path = "../rig/mod.rs"]
mod rig;

use std::io::Write;
use std::time::Duration;

use faulting_device::{BLOCKS, FaultKind, FaultingDevice, Recovery, Target, WRITTEN};
use kiln_driver::{DevicePlace, Driver, DriverExt, Protection};
use kiln_isolate::{Checksum, LossCause};
use rig::held::Held;

/// The word a kernel wrote, and the next one, which it was to write as well.
const WRITTEN_BYTES: usize = 8;
/// Free memory varies on a device that other processes use as well.
const MEMORY_SLACK_BYTES: u64 = 64 << 20;

#[test]
#[ignore = "helper process"]
fn worker() {
    faulting_device::worker();
}

/// Runs a test if there is such a device; otherwise it counts as skipped.
fn on(target: Target, standby: bool, run: impl FnOnce(FaultingDevice)) {
    let _turn = rig::turn();
    let before = Held::settled();
    let required = std::env::var_os("KILN_REQUIRE_GPU").is_some_and(|value| value == "1");
    match FaultingDevice::open(target, standby) {
        Some(subject) => run(subject),
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

/// Prints past the harness, which would capture it.
fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}").unwrap();
}

fn milliseconds(time: Duration) -> String {
    format!("{:.2}", time.as_secs_f64() * 1e3)
}

/// Compares every byte of a block, except those its kernel wrote. A device carries out a misaligned store at the aligned address before it, and
/// then faults.
fn check_block(subject: &FaultingDevice, block: u64, is_written: bool) {
    let (found, expected) = (subject.download(block), &subject.contents[block as usize]);
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
    subject: &FaultingDevice,
    fault: FaultKind,
    standby: bool,
    recovery: &Recovery,
    direct: kiln_driver::MemoryId,
) {
    let takeover = &recovery.takeover;
    let code = recovery.code.unwrap();
    assert!(fault.codes().contains(&code), "{fault:?}: {code:?}");
    let expected_cause = match fault {
        FaultKind::EndlessKernel => matches!(takeover.cause, LossCause::Hung { .. }),
        FaultKind::Killed => matches!(takeover.cause, LossCause::Ended(_)),
        _ => matches!(takeover.cause, LossCause::Fault(_)),
    };
    assert!(expected_cause, "{:?}", takeover.cause);
    assert_eq!(takeover.standby, standby);
    assert_eq!(
        takeover.rebuilt.is_empty(),
        standby,
        "prepared: {}; rebuilt: {}",
        takeover.prepared,
        takeover.rebuilt
    );
    let unfinished: Vec<_> = takeover.unfinished.iter().map(|unfinished| unfinished.stream).collect();
    assert_eq!(unfinished, [subject.stream]);
    assert_eq!(takeover.lost_memory, [direct]);
    assert!(takeover.lost_pages.is_empty() && takeover.lost_graphs.is_empty());
    assert_eq!(takeover.kept_bytes, (BLOCKS + 1) * subject.granule);
}

fn every_fault(target: Target, standby: bool) {
    on(target, standby, |mut subject| {
        let capability = subject.device.info().capability;
        if standby {
            say(
                "| fault | standby | code | detected | kill | start | pages | hosts | code | queues | until a kernel ran | prepared | rebuilt |",
            );
            say("|---|---|---|---|---|---|---|---|---|---|---|---|---|");
        }
        for fault in FaultKind::ALL.into_iter().filter(|fault| fault.is_possible(target, capability)) {
            let direct = subject.direct.id;
            let recovery = subject.fault_and_recover(fault, 0);
            check_outcome(&subject, fault, standby, &recovery, direct);
            for block in 0..BLOCKS {
                check_block(&subject, block, block == 0);
            }
            let phases = &recovery.takeover.phases;
            let times = [
                phases.kill,
                phases.start,
                phases.pages,
                phases.hosts,
                phases.code,
                phases.queues,
                recovery.recovered,
            ];
            say(&format!(
                "| {fault:?} | {standby} | {} | {} | {} | {} | {} |",
                recovery.code.unwrap(),
                milliseconds(recovery.detected),
                times.map(milliseconds).join(" | "),
                recovery.takeover.prepared,
                recovery.takeover.rebuilt
            ));
            subject.upload(0);
            subject.await_standby(standby);
        }
    });
}

/// Faults in a row in one client. The memory of the device is measured with a standby that has everything, as at first.
fn many_faults(target: Target, default: u32) {
    on(target, true, |mut subject| {
        let wanted = std::env::var("KILN_FAULTS").ok().and_then(|text| text.parse().ok());
        let rounds = wanted.unwrap_or(default);
        let held = Held::now();
        let free = subject.device.memory_info().unwrap().free_bytes;
        let begun = std::time::Instant::now();
        let (mut recoveries, mut ready) = (Vec::new(), 0);
        for round in 0..rounds {
            // The next fault does not wait for the next standby, so the two overlap.
            let recovery = subject.fault_and_recover(FaultKind::IllegalAddress, 0);
            recoveries.push(recovery.recovered);
            ready += u32::from(recovery.takeover.standby);
            let is_checked = round % 100 == 99 || round + 1 == rounds;
            for block in (0..BLOCKS).filter(|_| is_checked) {
                check_block(&subject, block, block == 0);
            }
            if is_checked {
                say(&format!("{} faults, {:.1} s", round + 1, begun.elapsed().as_secs_f64()));
            }
            assert_eq!(subject.device.generation(), u64::from(round) + 2);
        }
        subject.await_standby(true);
        recoveries.sort();
        say(&format!(
            "{rounds} faults in a row in {:.1} s, {ready} met a standby that was ready; until a kernel ran: median {} ms, most {} ms",
            begun.elapsed().as_secs_f64(),
            milliseconds(recoveries[recoveries.len() / 2]),
            milliseconds(*recoveries.last().unwrap()),
        ));
        let left = subject.device.memory_info().unwrap().free_bytes;
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

/// A kernel writes to a block that it was not given, and faults.
fn stray_writes(target: Target) {
    on(target, true, |mut subject| {
        let sealed: Vec<_> = (0..BLOCKS).map(|block| subject.sums(block)).collect();
        for (block, sums) in sealed.iter().enumerate() {
            assert_eq!(*sums, Checksum::of(&subject.contents[block]), "the device sums as the host does");
        }
        // No access to the second block was declared, so only its checksum shows the write.
        subject.fault_and_recover(FaultKind::IllegalAddress, 1);
        for block in 0..BLOCKS {
            let is_same = subject.sums(block) == sealed[block as usize];
            assert_eq!(is_same, block != 1, "block {block}");
        }
        assert_eq!(subject.download(1)[..4], WRITTEN);
        subject.upload(1);
        assert_eq!(subject.sums(1), sealed[1]);

        // Read-only, the write itself is the fault, and the bytes stay what they were; also in the next worker.
        let (offset, bytes) = (2 * subject.granule, subject.granule);
        subject.device.protect(subject.range.id, offset, bytes, Protection::Read).unwrap();
        subject.await_standby(true);
        for _ in 0..2 {
            subject.fault_and_recover(FaultKind::IllegalAddress, 2);
            check_block(&subject, 2, false);
            assert_eq!(subject.sums(2), sealed[2]);
            subject.await_standby(true);
        }
        // It can be written again when that is allowed.
        subject.device.protect(subject.range.id, offset, bytes, Protection::ReadWrite).unwrap();
        let place = DevicePlace::from(subject.range.id).plus(offset);
        subject.device.fill(subject.stream, place, 5, bytes).unwrap();
        subject.device.synchronize(subject.stream).unwrap();
        assert!(subject.download(2).iter().all(|byte| *byte == 5));
    });
}

#[test]
fn every_fault_with_a_standby() {
    every_fault(Target::Simulated, true);
}

#[test]
fn every_fault_without_a_standby() {
    every_fault(Target::Simulated, false);
}

#[test]
fn many_faults_in_a_row_leave_nothing() {
    many_faults(Target::Simulated, 25);
}

#[test]
fn stray_writes_are_stopped_or_found() {
    stray_writes(Target::Simulated);
}

#[test]
fn every_fault_on_cuda_with_a_standby() {
    every_fault(Target::Cuda, true);
}

#[test]
fn every_fault_on_cuda_without_a_standby() {
    every_fault(Target::Cuda, false);
}

#[test]
fn many_faults_in_a_row_on_cuda_leave_nothing() {
    many_faults(Target::Cuda, 100);
}

#[test]
fn stray_writes_on_cuda_are_stopped_or_found() {
    stray_writes(Target::Cuda);
}
