//! Every way a kernel can go wrong, and what the runtime says and keeps.

use std::time::Duration;

use kiln::recovery::{BlockOutcome, DeviceSpec, Process};
use kiln::{buffer::Stale, error::ErrorKind};
use kiln_driver::Code;

use crate::{kernels, rig};

#[test]
fn every_kind_of_fault_costs_its_own_block_and_says_why() {
    let kinds = [
        ("illegal", Code::ILLEGAL_ADDRESS),
        ("misaligned", Code::MISALIGNED_ADDRESS),
        ("traps", Code::LAUNCH_FAILED),
    ];
    let gpu = rig::open(5, rig::process());
    let large: Vec<u32> = (0..300_000).collect();
    let kept = gpu.upload(&large).unwrap();
    gpu.synchronize().unwrap();
    for (generation, (name, code)) in (0..).zip(kinds) {
        let kernel = gpu.kernel(kernels::PTX, name).unwrap();
        let (touched, read) = (gpu.zeros::<u32>(1).unwrap(), gpu.upload(&[5_u32]).unwrap());
        let unwritten = gpu.allocate::<u32>(100).unwrap();
        gpu.synchronize().unwrap();
        let mut launch = gpu.launch(&kernel);
        launch.grid(1).block(1);
        // SAFETY: it is to fault.
        let ticket = unsafe { launch.write(&touched).submit() }.unwrap();
        let error = ticket.wait().unwrap_err();
        assert_eq!(error.code(), Some(code), "{name}: {error}");
        let report = rig::recovered(&gpu, generation);
        assert_eq!((report.cause.code(), report.cause.kernel()), (Some(code), Some(name)), "{report}");
        assert!(report.cause.launched_at().is_some_and(|at| at.file().ends_with("faults.rs")), "{report}");
        assert_eq!(touched.access(), Err(Stale::Lost), "{name}");
        assert_eq!(touched.loss().unwrap().code(), Some(code));
        assert_eq!(ticket.wait().unwrap_err().code(), Some(code), "it failed, and stays so");
        assert_eq!((kept.download().unwrap() == large, read.download().unwrap()), (true, vec![5]), "{name}");
        assert!(unwritten.access().is_ok(), "nothing was to write it");
        let [unfinished] = &report.unfinished[..] else { panic!("{report}") };
        assert_eq!(
            (&*unfinished.what, &*unfinished.writes),
            (&*format!("launch {name}"), &[touched.block_id()][..])
        );
        let page = report.to_string();
        assert!(
            page.contains(&format!("launch {name}"))
                && page.contains("written by an unfinished launch or copy"),
            "{page}"
        );
        let lost: Vec<_> = report.lost().map(|record| (record.block, record.outcome)).collect();
        assert_eq!(lost, [(touched.block_id(), BlockOutcome::Touched)]);
        // The same kernels, on what is left.
        let copy = gpu.kernel(kernels::PTX, "copy").unwrap();
        let first = unwritten.view(0..1).unwrap();
        // SAFETY: it touches one element of each.
        unsafe { gpu.launch(&copy).grid(1).block(1).read(&read).write(&first).submit() }.unwrap();
        assert_eq!(first.download().unwrap(), [5]);
    }
}

/// The table that a GPU fills with its own times.
#[test]
fn every_kind_of_fault_is_survived_with_and_without_a_standby() {
    let table = crate::table::run(&DeviceSpec::simulated(4), 100_000, Duration::from_millis(300));
    assert_eq!(table.lines().count(), 1 + 2 * 6, "{table}");
}

#[test]
fn work_that_hangs_is_ended_by_the_watchdog() {
    let gpu = rig::open(6, Process { watchdog: Some(Duration::from_secs(1)), ..rig::process() });
    let kept = gpu.upload(&[1_u32, 2]).unwrap();
    let touched = gpu.zeros::<u32>(1).unwrap();
    gpu.synchronize().unwrap();
    let endless = gpu.kernel(kernels::PTX, "endless").unwrap();
    // SAFETY: it writes one element, for ever.
    let ticket = unsafe { gpu.launch(&endless).grid(1).block(1).write(&touched).submit() }.unwrap();
    assert!(ticket.wait().unwrap_err().is_lost());
    let report = rig::recovered(&gpu, 0);
    assert_eq!(report.cause.code(), Some(Code::LAUNCH_TIMEOUT), "{report}");
    assert_eq!((kept.download().unwrap(), touched.access()), (vec![1, 2], Err(Stale::Lost)));
}

#[test]
fn a_fault_is_noticed_without_being_asked_for() {
    let gpu = rig::open(7, rig::process());
    let touched = gpu.zeros::<u32>(1).unwrap();
    let illegal = gpu.kernel(kernels::PTX, "illegal").unwrap();
    // SAFETY: it is to fault.
    unsafe { gpu.launch(&illegal).grid(1).block(1).write(&touched).submit() }.unwrap();
    let report = rig::recovered(&gpu, 0);
    assert_eq!(report.cause.kernel(), Some("illegal"));
}

#[test]
fn a_standby_takes_over() {
    let gpu = rig::open(8, Process { standby: true, ..rig::process() });
    let kept = gpu.upload(&[9_u32; 1000]).unwrap();
    gpu.synchronize().unwrap();
    let mut by_standby = 0;
    for _ in 0..5 {
        by_standby += u32::from(rig::kill(&gpu).standby);
        assert_eq!(kept.download().unwrap(), [9; 1000]);
        // Time for the next one to become ready; it is the aim here, and a slow machine only makes fewer of them.
        std::thread::sleep(Duration::from_millis(300));
    }
    assert!(by_standby > 0);
}

#[test]
fn streams_graphs_and_pinned_memory_go_on() {
    let gpu = rig::open(9, rig::process());
    let stream = gpu.stream().unwrap();
    let (from, to) = (gpu.upload(&[4_u32]).unwrap(), gpu.zeros::<u32>(1).unwrap());
    let copy = gpu.kernel(kernels::PTX, "copy").unwrap();
    let mut builder = gpu.graph();
    // SAFETY: the kernel touches one element of each.
    unsafe { builder.launch(&copy).grid(1).block(1).read(&from).write(&to).record() }.unwrap();
    let graph = builder.build().unwrap();
    let mut pinned = gpu.pinned::<u32>(1).unwrap();
    gpu.synchronize().unwrap();
    for value in 10_u32..13 {
        rig::kill(&gpu);
        from.upload_on(&stream, &[value]).unwrap();
        graph.replay_on(&stream).unwrap();
        pinned.copy_from(&to).unwrap().wait().unwrap();
        assert_eq!(pinned.read().unwrap(), [value]);
    }
    // A copy that was under way when the worker was lost did not bring anything.
    let endless = gpu.kernel(kernels::PTX, "endless").unwrap();
    let held = gpu.zeros::<u32>(1).unwrap();
    // SAFETY: it writes one element, for ever.
    unsafe { gpu.launch(&endless).grid(1).block(1).write(&held).submit() }.unwrap();
    pinned.copy_from(&held).unwrap();
    rig::kill(&gpu);
    assert!(pinned.read().unwrap_err().is_lost());
    pinned.write().unwrap()[0] = 3;
    assert_eq!(pinned.read().unwrap(), [3]);
    // A graph that names a block that is gone is refused, and says so.
    // SAFETY: as above.
    unsafe { gpu.launch(&endless).grid(1).block(1).write(&to).submit() }.unwrap();
    rig::kill(&gpu);
    let error = graph.replay_on(&stream).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Stale(Stale::Lost)), "{error}");
}
