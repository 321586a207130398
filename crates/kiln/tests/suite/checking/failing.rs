//! A finding fails the work that made it and all that waits for it, by every way to wait; the device goes on.

use std::sync::Arc;
use std::sync::mpsc;
use std::time::Duration;

use kiln::checking::{FindingRule, Findings};
use kiln::error::ErrorKind;
use kiln::{DeviceRuntime, Error, GpuRef, Kernel, RuntimeConfig, Ticket};
use kiln_sim::{Machine, MachineConfig, PtxEngine};

use super::kernels::KERNELS;

const LONG: Duration = Duration::from_secs(100);

pub(super) struct Scene {
    pub(super) store: Kernel,
    pub(super) data: GpuRef<u32>,
    pub(super) neighbour: GpuRef<u32>,
    /// Dropped last, after its buffers.
    pub(super) gpu: DeviceRuntime,
}

pub(super) fn scene(seed: u64, findings: Findings) -> Scene {
    let machine = Machine::new(MachineConfig::seeded(seed).engine(Arc::new(PtxEngine::default())));
    let config = RuntimeConfig { findings, ..RuntimeConfig::default() };
    let gpu = DeviceRuntime::from_driver(machine.device(0).unwrap(), config).unwrap();
    let store = gpu.kernel(KERNELS, "store").unwrap();
    let (data, neighbour) = (gpu.zeros(256).unwrap(), gpu.zeros(256).unwrap());
    Scene { gpu, store, data, neighbour }
}

impl Scene {
    /// Writes so many elements of a buffer of 256.
    pub(super) fn launch(&self, elements: u32) -> Ticket {
        let mut launch = self.gpu.launch(&self.store);
        // SAFETY: the simulator checks every access, and what lies behind the buffer is mapped.
        unsafe { launch.threads(u64::from(elements)).write(&self.data).value(elements).submit().unwrap() }
    }
}

#[track_caller]
pub(super) fn check(error: &Error) {
    let finding = error.finding().unwrap_or_else(|| panic!("{error}"));
    assert_eq!(
        (finding.rule, finding.kernel.as_deref()),
        (FindingRule::Undeclared, Some("store")),
        "{error}"
    );
    assert_eq!(
        finding.line.as_ref().map(|line| (line.file.as_str(), line.line)),
        Some(("ptx", 14)),
        "{error}"
    );
    assert!(error.to_string().contains("past the end of argument 0 (`data`)"), "{error}");
    assert!(matches!(error.kind(), ErrorKind::Finding(_)));
    assert!(!error.is_lost() && !error.is_sticky() && !error.is_retryable() && !error.is_oom());
}

fn poll(ticket: &Ticket) -> kiln::Result<()> {
    while !ticket.is_done()? {}
    Ok(())
}

#[test]
fn every_way_to_wait_is_told_and_the_device_goes_on() {
    type Wait = fn(&Scene, &Ticket) -> kiln::Result<()>;
    let ways: [(&str, Wait); 9] = [
        ("wait", |_, ticket| ticket.wait()),
        ("wait_within", |_, ticket| ticket.wait_within(LONG).map(|_| ())),
        ("wait_all", |_, ticket| Ticket::wait_all(std::slice::from_ref(ticket), None).map(|_| ())),
        ("is_done", |_, ticket| poll(ticket)),
        ("future", |_, ticket| {
            tokio::runtime::Builder::new_current_thread()
                .build()
                .unwrap()
                .block_on(async { ticket.clone().await })
        }),
        ("callback", |_, ticket| {
            let (told, tell) = mpsc::channel();
            ticket.on_done(move |result| told.send(result).unwrap());
            tell.recv().unwrap()
        }),
        ("download", |scene, _| scene.data.download().map(|_| ())),
        ("synchronize", |scene, _| scene.gpu.synchronize()),
        ("stream", |scene, _| scene.gpu.main_stream().synchronize()),
    ];
    for (at, (name, way)) in ways.into_iter().enumerate() {
        let scene = scene(at as u64, Findings::Fail);
        let ticket = scene.launch(260);
        match way(&scene, &ticket) {
            Err(error) => check(&error),
            Ok(()) => panic!("{name}: nothing was told"),
        }
        check(&ticket.wait().expect_err(name));
        assert!(scene.gpu.state().is_ready(), "{name}");
        scene.launch(256).wait().unwrap();
        assert_eq!(scene.data.download().unwrap()[255], 255, "{name}");
        scene.gpu.synchronize().unwrap();
        assert!(scene.gpu.shutdown(LONG).unwrap(), "{name}");
    }
}

#[test]
fn work_that_does_not_wait_for_it_is_not_failed() {
    let scene = scene(3, Findings::Fail);
    let (one, two) = (scene.gpu.stream().unwrap(), scene.gpu.stream().unwrap());
    let before = scene.neighbour.fill_on(&one, 1).unwrap();
    let mut launch = scene.gpu.launch(&scene.store);
    // SAFETY: as above.
    let bad = unsafe { launch.on(&one).threads(260).write(&scene.data).value(260_u32).submit().unwrap() };
    let apart = scene.gpu.zeros::<u32>(4).unwrap();
    let other = apart.fill_on(&two, 1).unwrap();
    let after = scene.data.fill_on(&two, 0).unwrap();
    before.wait().unwrap();
    other.wait().unwrap();
    check(&after.wait().unwrap_err());
    check(&bad.wait().unwrap_err());
    check(&after.wait().unwrap_err());
    scene.data.fill_on(&two, 3).unwrap().wait().unwrap();
}

#[test]
fn a_graph_fails_as_a_launch_does() {
    let scene = scene(4, Findings::Fail);
    let (graph, ()) = scene
        .gpu
        .record(|builder| {
            // SAFETY: as above.
            unsafe { builder.launch(&scene.store).threads(260).write(&scene.data).value(260_u32).record()? };
            Ok(())
        })
        .unwrap();
    for _ in 0..2 {
        check(&graph.replay().unwrap().wait().unwrap_err());
    }
}

#[test]
fn what_no_caller_was_told_fails_the_shutdown_and_is_listed() {
    let bad = scene(5, Findings::Fail);
    let _ = bad.launch(260);
    check(&bad.gpu.shutdown(LONG).unwrap_err());
    assert!(bad.gpu.shutdown(LONG).unwrap(), "it was told");
    let list = bad.gpu.findings();
    assert_eq!((list.findings.len(), list.dropped), (1, 0));

    let read = scene(6, Findings::Fail);
    let ticket = read.launch(260);
    let _ = read.gpu.synchronize_within(LONG);
    assert_eq!(read.gpu.findings().findings[0].rule, FindingRule::Undeclared);
    assert!(read.gpu.shutdown(LONG).unwrap());
    check(&ticket.wait().unwrap_err());
}

#[test]
fn reported_findings_fail_nothing_and_ignored_ones_are_not_there() {
    for (setting, expected) in [(Findings::Report, 1), (Findings::Ignore, 0)] {
        let scene = scene(7, setting);
        scene.launch(260).wait().unwrap();
        scene.gpu.synchronize().unwrap();
        assert_eq!(scene.gpu.findings().findings.len(), expected, "{setting}");
        assert!(scene.gpu.shutdown(LONG).unwrap());
    }
}

#[test]
fn an_uninitialised_read_fails_the_download() {
    let scene = scene(8, Findings::Fail);
    let empty = scene.gpu.allocate::<u32>(16).unwrap();
    let error = empty.download().unwrap_err();
    assert_eq!(error.finding().map(|finding| finding.rule), Some(FindingRule::Uninitialised), "{error}");
}

#[test]
fn thousands_of_findings_are_counted_and_do_not_pile_up() {
    let scene = scene(9, Findings::Report);
    for _ in 0..1_500 {
        scene.launch(257).wait().unwrap();
    }
    let list = scene.gpu.findings();
    assert_eq!((list.findings.len(), list.dropped), (1_024, 1_500 - 1_024));
}

#[test]
fn a_finding_of_one_launch_is_one_however_many_threads_made_it() {
    let scene = scene(10, Findings::Fail);
    let error = scene.launch(512).wait().unwrap_err();
    check(&error);
    assert!(error.to_string().contains("(and 7 more)"), "{error}");
    assert_eq!(scene.gpu.findings().findings.len(), 1);
}
