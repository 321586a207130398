//! When work ran that a worker process had the device do: by events, and from CUPTI in the worker, for which a library stands in.

use std::time::Duration;

use kiln::recovery::{DeviceSpec, Isolation, Phase, Process, Status, WorkerEntry};
use kiln::telemetry::DeviceTimes;
use kiln::{DeviceRuntime, RuntimeConfig};

use crate::Recorded;
use crate::device_times::{CUPTI, fill, fills};
use crate::machine::{Machine, log};

/// A device in a worker process.
pub(crate) fn isolated(device: &DeviceSpec) -> DeviceRuntime {
    let variables = ["FAKE_CUDA_LOG", "FAKE_CUPTI_HELD"];
    let variables = variables.iter().filter_map(|name| Some((name.into(), std::env::var_os(name)?)));
    let process = Process {
        entry: WorkerEntry::Test("takeover::worker".into()),
        variables: variables.collect(),
        ..Process::default()
    };
    let config = RuntimeConfig { isolation: Isolation::Process(process), ..RuntimeConfig::default() };
    DeviceRuntime::open(device, config).unwrap()
}

/// Loses the worker, and waits for the next.
fn lose_worker(gpu: &DeviceRuntime) {
    let generation = gpu.watch().status().generation;
    gpu.isolated_device().unwrap().kill_worker();
    let ready = |status: &Status| status.generation > generation && status.phase() == Phase::Ready;
    let status = gpu.watch().wait_until(ready, Some(Duration::from_secs(60)));
    assert!(ready(&status), "{status:?}");
}

/// Every fill of a recording has a time, which lies near the moment at which it was submitted.
fn check(file: &Recorded, at_least: usize) {
    let fills = fills(file);
    assert!(fills.len() >= at_least && fills.is_sorted_by_key(|fill| fill.0), "{}", fills.len());
    for (number, host, device) in &fills {
        let device = device.unwrap_or_else(|| panic!("submission {number} has no time"));
        let slack = 2_000_000_000;
        assert!(
            device.end_ns >= device.begin_ns
                && host.begin_ns <= device.begin_ns + slack
                && device.end_ns <= host.end_ns + slack,
            "{number}: {host:?} {device:?}"
        );
    }
}

on_machine! {
    fn cupti_in_a_worker_tells_when_its_work_ran_and_so_does_that_of_the_next_worker()
    on Machine::fake().with_library("KILN_CUPTI", CUPTI) => {
        let file = Recorded::new();
        let gpu = isolated(&DeviceSpec::cuda(0));
        gpu.trace_with(&file, DeviceTimes::Cupti).unwrap();
        let taken = gpu.trace_times().unwrap();
        assert_eq!((taken.how, taken.why_not_as_asked), (DeviceTimes::Cupti, None));
        fill(&gpu, 500);
        gpu.synchronize().unwrap();
        assert_eq!(gpu.flush_trace().unwrap().dropped, 0);
        assert!(fills(&file).iter().filter(|fill| fill.2.is_some()).count() >= 499, "before the end");
        lose_worker(&gpu);
        fill(&gpu, 500);
        gpu.synchronize().unwrap();
        drop(gpu);
        check(&file, 1000);
        let own = format!("{} ", std::process::id());
        let told: Vec<String> = log().into_iter().filter(|line| line.ends_with(" subscribe 0")).collect();
        assert_eq!(told.len(), 2, "each worker has its own: {told:?}");
        assert!(told.iter().all(|line| !line.starts_with(&own)), "none in the program: {told:?}");
    }

    fn where_a_worker_has_no_cupti_events_are_used_and_the_reason_is_told()
    on Machine::fake().with_library("KILN_CUPTI", CUPTI).with("FAKE_CUPTI_HELD", "Nsight Systems") => {
        let file = Recorded::new();
        let gpu = isolated(&DeviceSpec::cuda(0));
        gpu.trace_with(&file, DeviceTimes::Cupti).unwrap();
        let taken = gpu.trace_times().unwrap();
        assert_eq!(taken.how, DeviceTimes::Events { every: 1 });
        let why = taken.why_not_as_asked.unwrap();
        assert!(why.contains("in the worker process: CUPTI is held by Nsight Systems"), "{why}");
        fill(&gpu, 20);
        gpu.synchronize().unwrap();
        lose_worker(&gpu);
        fill(&gpu, 20);
        gpu.synchronize().unwrap();
        drop(gpu);
        check(&file, 40);
    }
}

#[test]
fn a_simulated_device_in_a_worker_is_not_measured_and_says_why() {
    let file = Recorded::new();
    let gpu = isolated(&DeviceSpec::simulated(1));
    gpu.trace_with(&file, DeviceTimes::Events { every: 1 }).unwrap();
    let taken = gpu.trace_times().unwrap();
    assert_eq!(taken.how, DeviceTimes::HostOnly);
    assert!(taken.why_not_as_asked.unwrap().contains("virtual clock"));
}

/// Who asks by the environment has no `trace_times()`.
#[test]
fn who_starts_a_program_is_told_why_a_worker_has_no_times() {
    let file = Recorded::new();
    let output = crate::exits::recorded_worker("events", &file).wait_with_output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    let line = "kiln: KILN_TRACE: the device's times are not taken by events, nor otherwise: the virtual clock of a simulated device is in its worker process";
    assert!(output.status.success() && said.lines().any(|told| told == line), "{said}");
    // Nothing is missing where no times were asked for.
    let output = crate::exits::recorded_worker("host", &file).wait_with_output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success() && !said.contains("times"), "{said}");
}
