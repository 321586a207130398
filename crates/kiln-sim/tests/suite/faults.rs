//! Every item of the fault plan, and what the device answers then.

use std::time::Duration;

use kiln_driver::{
    Code, Driver, DriverExt, ErrorKind, Health, Image, MemoryRequest, PageRequest, Refusal, StreamRequest,
    Timeout, WaitTarget, Waited,
};
use kiln_sim::{DeviceConfig, FaultPlan, FindingKind, Machine, PlannedFault};

use crate::rig::{Kernel, Rig, config};

fn with(fault: PlannedFault) -> Machine {
    Machine::new(config(0).faults(FaultPlan::none().on(0, fault)))
}

#[test]
fn the_nth_allocation_finds_no_memory_and_the_next_does() {
    let machine = with(PlannedFault::OutOfMemory { allocation: 3 });
    let device = machine.device(0).unwrap();
    let first = device.allocate(MemoryRequest::Direct { bytes: 64 }).unwrap();
    device.allocate_host(64).unwrap();
    let before = device.memory_info().unwrap();
    let error = device.create_pages(PageRequest { bytes: 2 << 20, exportable: false }).unwrap_err();
    assert!(error.is_oom() && error.is_retryable(), "{error}");
    assert_eq!(device.memory_info().unwrap(), before, "nothing was changed");
    device.create_pages(PageRequest { bytes: 2 << 20, exportable: false }).unwrap();
    device.free(first.id, None).unwrap();
    assert!(device.health().is_healthy());
}

#[test]
fn a_sticky_error_arrives_late_with_its_site_and_stays() {
    let rig = Rig::new(&with(PlannedFault::Sticky { launch: 2, code: Code::ECC_UNCORRECTABLE }), 2);
    let x = rig.direct(8);
    rig.write(0, x, 1);
    let second = rig.launch(0, Kernel::Bump, &[x.address.0, 8]).unwrap();
    let error = rig.device.synchronize(rig.streams[0]).unwrap_err();
    assert_eq!(error.code(), Some(Code::ECC_UNCORRECTABLE));
    let site = error.site().expect("late failures name their submission").clone();
    assert_eq!(
        (site.stream, site.submission, site.command.as_str()),
        (rig.streams[0], second, "launch bump")
    );

    let later = [
        rig.device.synchronize(rig.streams[1]),
        rig.device.free(x.id, None),
        rig.device.allocate(MemoryRequest::Direct { bytes: 1 }).map(|_| ()),
        rig.device.create_stream(StreamRequest::New { priority: 0 }).map(|_| ()),
        rig.device.progress(rig.streams[1]).map(|_| ()),
        rig.device.load(&Image::HostKernels("rig")).map(|_| ()),
        rig.device.destroy(rig.streams[0].into()),
        rig.device.memory_info().map(|_| ()),
        rig.device.allocate_host(1).map(|_| ()),
        rig.launch(1, Kernel::Spin, &[1]).map(|_| ()),
    ];
    for answer in later {
        let error = answer.unwrap_err();
        assert!(error.is_sticky() && error.code() == Some(Code::ECC_UNCORRECTABLE), "{error}");
        assert_eq!(error.site(), Some(&site));
    }
    let Health::Lost(error) = rig.device.health() else { panic!("lost") };
    assert_eq!(error.site(), Some(&site));
    assert!(rig.machine.finish().is_clean(), "what cannot be given back is no leak");
}

#[test]
fn health_learns_of_a_fault_without_any_wait() {
    let rig = Rig::new(&with(PlannedFault::Sticky { launch: 1, code: Code::LAUNCH_FAILED }), 1);
    rig.launch(0, Kernel::Spin, &[1]).unwrap();
    let mut asked = 0;
    while rig.device.health().is_healthy() {
        asked += 1;
        assert!(asked < 100, "the device moves while the host only asks");
    }
}

#[test]
fn a_device_is_lost_at_a_call_or_at_a_time() {
    let machine = with(PlannedFault::LostAtCall { call: 3, code: Code::NVLINK_UNCORRECTABLE });
    let device = machine.device(0).unwrap();
    device.memory_info().unwrap();
    device.memory_info().unwrap();
    assert_eq!(device.memory_info().unwrap_err().code(), Some(Code::NVLINK_UNCORRECTABLE));
    assert_eq!(device.memory_info().unwrap_err().code(), Some(Code::NVLINK_UNCORRECTABLE));

    let machine = with(PlannedFault::LostAt { time: Duration::from_secs(1), code: Code::UNKNOWN });
    let device = machine.device(0).unwrap();
    device.memory_info().unwrap();
    device.clock().sleep(Duration::from_secs(2));
    assert!(matches!(device.memory_info().unwrap_err().kind(), ErrorKind::Lost(_)));
}

#[test]
fn a_wait_ends_when_the_device_is_lost_meanwhile() {
    let machine = with(PlannedFault::LostAt { time: Duration::from_secs(1), code: Code::UNKNOWN });
    let rig = Rig::new(&machine, 1);
    rig.launch(0, Kernel::Spin, &[5_000_000_000]).unwrap();
    assert!(rig.device.synchronize(rig.streams[0]).unwrap_err().is_sticky());
}

#[test]
fn slow_copies_are_slow_and_the_rest_is_not() {
    let time = |machine: &Machine| {
        let rig = Rig::new(machine, 1);
        let (x, host) = (rig.block(1 << 20), rig.host(1 << 20));
        rig.upload(0, &host, x.id);
        rig.bump(0, x);
        rig.close();
        let spans = machine.timeline();
        (spans[0].end - spans[0].start, spans[1].end - spans[1].start)
    };
    let usual = time(&Machine::new(config(0)));
    let slow = time(&with(PlannedFault::SlowCopies { factor: 10 }));
    assert_eq!(slow, (usual.0 * 10, usual.1));
}

#[test]
fn a_load_fails_with_the_code_and_the_log_of_the_plan() {
    let log = "ptxas fatal: as planned".to_string();
    let machine = with(PlannedFault::LoadFails { load: 1, code: Code::INVALID_PTX, log: log.clone() });
    let device = machine.device(0).unwrap();
    let error = device.load(&Image::HostKernels("rig")).unwrap_err();
    assert_eq!(error.refusal(), Some(&Refusal::Image { code: Some(Code::INVALID_PTX), log }));
    device.load(&Image::HostKernels("rig")).unwrap();
}

#[test]
fn a_hang_runs_into_a_timeout_and_without_one_into_the_watchdog() {
    let rig = Rig::new(&with(PlannedFault::Hang { launch: 1 }), 2);
    rig.launch(0, Kernel::Spin, &[1]).unwrap();
    rig.launch(1, Kernel::Spin, &[1]).unwrap();
    let streams = [WaitTarget::Stream(rig.streams[0]), WaitTarget::Stream(rig.streams[1])];
    let start = rig.device.clock().now();
    let minute = Timeout::After(Duration::from_secs(60));
    let waited: Vec<Waited> =
        streams.iter().map(|stream| rig.device.wait(*stream, minute).unwrap()).collect();
    assert_eq!(waited.iter().filter(|waited| waited.is_done()).count(), 1, "the other stream goes on");
    let passed = rig.device.clock().now() - start;
    assert!(passed >= Duration::from_secs(60) && passed < Duration::from_secs(61), "{passed:?}");
    let hung = usize::from(waited[0].is_done());
    assert!(!rig.device.wait(streams[hung], Timeout::Poll).unwrap().is_done());
    let error = rig.device.wait(streams[hung], Timeout::Never).unwrap_err();
    assert_eq!(error.code(), Some(Code::LAUNCH_TIMEOUT));
    assert_eq!(error.site().unwrap().stream, rig.streams[hung]);
    let report = rig.machine.finish();
    assert_eq!(report.count(&FindingKind::Hang), 1, "{report}");
}

#[test]
fn kernels_that_panic_or_never_end_lose_the_device_and_nothing_else() {
    for (kernel, code) in [(Kernel::Panic, Code::LAUNCH_FAILED), (Kernel::Endless, Code::LAUNCH_TIMEOUT)] {
        let rig = Rig::seeded(0, 1);
        rig.launch(0, kernel, &[]).unwrap();
        let error = rig.device.synchronize(rig.streams[0]).unwrap_err();
        assert_eq!(error.code(), Some(code), "{error}");
        assert!(Rig::seeded(0, 1).device.health().is_healthy());
    }
}

#[test]
fn a_broken_device_does_not_hide_the_others() {
    let config = config(0)
        .device(DeviceConfig::default())
        .device(DeviceConfig::broken(Code::DEVICE_UNAVAILABLE))
        .device(DeviceConfig::broken(Code::ECC_UNCORRECTABLE))
        .device(DeviceConfig::small());
    let machine = Machine::new(config);
    assert_eq!(machine.devices().len(), 4);
    let error = machine.device(1).unwrap_err();
    assert_eq!(error.refusal(), Some(&Refusal::Driver(Code::DEVICE_UNAVAILABLE)));
    assert!(machine.device(2).unwrap_err().is_sticky());
    assert!(machine.device(4).unwrap_err().is_refused());
    for ordinal in [0, 3] {
        let rig = Rig::on(&machine, ordinal, 1);
        let x = rig.block(64);
        rig.write(0, x, 1);
        rig.close();
    }
    assert!(machine.finish().is_clean());
}

#[test]
fn a_fault_on_one_device_leaves_the_other_alone() {
    let plan = FaultPlan::none().on(1, PlannedFault::Sticky { launch: 1, code: Code::ILLEGAL_ADDRESS });
    let config = config(0).faults(plan).device(DeviceConfig::default()).device(DeviceConfig::default());
    let machine = Machine::new(config);
    let (good, bad) = (Rig::on(&machine, 0, 1), Rig::on(&machine, 1, 1));
    bad.launch(0, Kernel::Spin, &[1]).unwrap();
    assert!(bad.device.synchronize(bad.streams[0]).unwrap_err().is_sticky());
    good.launch(0, Kernel::Spin, &[1]).unwrap();
    good.close();
}

#[test]
fn planned_faults_that_did_not_come_are_in_the_report_and_those_that_came_in_the_file() {
    let file = std::env::temp_dir().join(format!("kiln-fault-log-{}", std::process::id()));
    let mut config = config(0).faults("oom@9,oom@2,load@1,slow-copies@3,1:hang@1,9:cut-0@1".parse().unwrap());
    config.fault_log = Some(file.clone());
    let machine = Machine::new(config);
    let device = machine.device(0).unwrap();
    device.load(&Image::HostKernels("rig")).unwrap_err();
    let block = device.allocate(MemoryRequest::Direct { bytes: 64 }).unwrap();
    assert!(device.allocate(MemoryRequest::Direct { bytes: 64 }).unwrap_err().is_oom());
    device.free(block.id, None).unwrap();
    let report = machine.finish();
    let left = "0:oom@9,0:slow-copies@3,1:hang@1,9:cut-0@1";
    assert!(report.is_clean() && report.faults_to_come.to_string() == left, "{report}");
    assert!(report.to_string().ends_with(&format!("planned, and did not come: {left}")), "{report}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "2\n1\n");
    std::fs::remove_file(&file).unwrap();
}
