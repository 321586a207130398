//! Faults of every kind at every place of a program: every caller is answered once, with the cause, and the neighbour goes on.

use std::time::Duration;

use kiln::recovery::Phase;
use kiln::{buffer::Stale, error::ErrorKind, recovery::DeviceState};
use kiln_driver::Code;
use kiln_sim::{FaultPlan, Mode, PlannedFault};

use super::scenario::{LAUNCH_FILE, LAUNCHES, Shown, expected, machine, run, runtime};

const STICKY: [Code; 5] = [
    Code::ILLEGAL_ADDRESS,
    Code::MISALIGNED_ADDRESS,
    Code::ASSERT,
    Code::ILLEGAL_INSTRUCTION,
    Code::ECC_UNCORRECTABLE,
];

/// Every caller is answered: with success, or with the fault.
fn check_answers(shown: &Shown, code: Code, place: &str) -> usize {
    let mut failed = 0;
    for heard in &shown.heard {
        if let Err(error) = heard.outcome() {
            assert_eq!(error.code(), Some(code), "{place}: {error}");
            assert!(error.is_sticky(), "{place}: {error}");
            failed += 1;
        }
    }
    failed
}

/// One run with a fault on device 0, while device 1 runs the same program.
fn survive(mode: Mode, fault: PlannedFault, code: Code, spin: Duration) {
    let place = format!("{mode}, {fault:?}, spin {spin:?}");
    let machine = machine(mode, FaultPlan::none().on(0, fault.clone()));
    let neighbour = runtime(&machine, 1, spin).unwrap();
    let Ok(gpu) = runtime(&machine, 0, spin) else {
        // Lost before there was a runtime.
        assert!(matches!(fault, PlannedFault::LostAtCall { .. } | PlannedFault::LostAt { .. }), "{place}");
        return;
    };
    let watch = gpu.watch();
    let shown = run(&gpu);
    let failed = check_answers(&shown, code, &place);
    if let DeviceState::Failed(cause) = gpu.state() {
        assert_eq!(cause.code(), Some(code), "{place}");
        if matches!(fault, PlannedFault::Sticky { .. } | PlannedFault::Hang { .. }) {
            assert_eq!(cause.kernel(), Some("mix"), "{place}");
            assert!(cause.launched_at().unwrap().file().ends_with(LAUNCH_FILE), "{place}");
            assert!(cause.ticket().is_some() && failed > 0, "{place}");
        }
        // Fail fast: every later call has the cause, and nothing hangs.
        for error in [
            gpu.zeros::<u32>(4).unwrap_err(),
            gpu.stream().err().unwrap_or_else(|| gpu.synchronize().unwrap_err()),
            gpu.upload(&[1]).unwrap_err(),
            gpu.shutdown(Duration::from_secs(1)).unwrap_err(),
        ] {
            assert_eq!((error.code(), error.is_sticky()), (Some(code), true), "{place}: {error}");
        }
    } else {
        assert_eq!(failed, 0, "{place}");
        assert_eq!(shown.result.as_ref().unwrap(), &expected(), "{place}");
        assert!(gpu.state().is_ready(), "{place}");
    }
    drop(gpu);
    assert_eq!(watch.status().phase(), Phase::Stopped, "{place}");
    assert!(shown.heard.iter().all(|heard| heard.answers() == 1), "{place}: once");
    assert_eq!(run(&neighbour).result.unwrap(), expected(), "{place}: the other device goes on");
}

fn spins() -> [Duration; 2] {
    [Duration::ZERO, Duration::from_micros(20)]
}

#[test]
fn without_a_fault_every_waiter_is_told_of_success() {
    for mode in [Mode::Seeded(1), Mode::Seeded(2), Mode::Threaded { workers: 2 }] {
        for spin in spins() {
            let machine = machine(mode.clone(), FaultPlan::none());
            let gpu = runtime(&machine, 0, spin).unwrap();
            let shown = run(&gpu);
            assert_eq!(shown.result.as_ref().unwrap(), &expected());
            assert_eq!(check_answers(&shown, Code::UNKNOWN, "no fault"), 0);
            assert_eq!(shown.heard.len(), 15);
            drop(gpu);
            assert!(shown.heard.iter().all(|heard| heard.answers() == 1));
            let report = machine.finish();
            assert!(report.is_clean(), "{report}");
        }
    }
}

#[test]
fn a_sticky_error_at_every_launch() {
    for seed in 0..6 {
        for (launch, code) in (1..=LAUNCHES).zip(STICKY.into_iter().cycle().skip(seed as usize)) {
            for spin in spins() {
                survive(Mode::Seeded(seed), PlannedFault::Sticky { launch, code }, code, spin);
            }
        }
    }
}

#[test]
fn a_sticky_error_at_every_launch_on_threads() {
    for launch in 1..=LAUNCHES {
        let code = Code::LAUNCH_FAILED;
        survive(Mode::Threaded { workers: 2 }, PlannedFault::Sticky { launch, code }, code, Duration::ZERO);
    }
}

#[test]
fn a_hang_at_every_launch() {
    for launch in 1..=LAUNCHES {
        for mode in [Mode::Seeded(launch), Mode::Threaded { workers: 2 }] {
            survive(mode, PlannedFault::Hang { launch }, Code::LAUNCH_TIMEOUT, Duration::ZERO);
        }
    }
}

#[test]
fn a_device_lost_at_every_call() {
    for call in 1..=90 {
        let code = Code::NVLINK_UNCORRECTABLE;
        survive(Mode::Seeded(call), PlannedFault::LostAtCall { call, code }, code, Duration::ZERO);
    }
}

#[test]
fn a_device_lost_at_some_time() {
    for micros in [1, 3, 10, 20, 30, 50, 100, 1000] {
        let (time, code) = (Duration::from_micros(micros), Code::ECC_UNCORRECTABLE);
        survive(Mode::Seeded(micros), PlannedFault::LostAt { time, code }, code, Duration::ZERO);
    }
}

#[test]
fn handles_of_a_failed_device_are_stale_and_say_so() {
    let code = Code::ILLEGAL_ADDRESS;
    let machine =
        machine(Mode::Seeded(1), FaultPlan::none().on(0, PlannedFault::LostAtCall { call: 60, code }));
    let gpu = runtime(&machine, 0, Duration::ZERO).unwrap();
    let buffer = gpu.upload(&[1_u32; 8]).unwrap();
    assert!(buffer.access().is_ok());
    while gpu.state().is_ready() {
        let _ = gpu.memory_info();
    }
    assert_eq!(buffer.access(), Err(Stale::Failed));
    assert!(matches!(buffer.download().unwrap_err().kind(), ErrorKind::Driver(_)));
    assert_eq!((buffer.generation().0, buffer.device_id()), (0, Some(0)));
    drop(gpu);
    assert_eq!(buffer.access(), Err(Stale::DeviceDropped));
}
