//! How it is known when work ran: by events around some of it, and from CUPTI, for which a library stands in.

use kiln::DeviceRuntime;
use kiln::telemetry::DeviceTimes;
use kiln::trace::{SubmissionRecord, TraceEvent};

use crate::Recorded;
use crate::machine::{Machine, calls};

pub(crate) const CUPTI: &str = include_str!("../../../kiln-cuda/tests/on_fake/libcupti/cupti.c");

/// Numbers of the fills in a file, when the host submitted each and when the device ran it.
pub(crate) fn fills(file: &Recorded) -> Vec<(u64, kiln::trace::TimeSpan, Option<kiln::trace::TimeSpan>)> {
    let mut found = Vec::new();
    file.each(|event| {
        if let TraceEvent::Submission(SubmissionRecord { stamp, name: "fill", host, device, .. }) = event {
            found.push((stamp.number, *host, *device));
        }
    });
    found
}

pub(crate) fn fill(gpu: &DeviceRuntime, times: u32) {
    let buffer = gpu.zeros::<u32>(64).unwrap();
    for value in 0..times {
        buffer.fill_on(gpu.main_stream(), value + 1).unwrap();
    }
}

on_machine! {
    fn every_nth_submission_has_events_around_it() on Machine::fake() => {
        let file = Recorded::new();
        let gpu = DeviceRuntime::from_driver(kiln_cuda::CudaDevice::open(0).unwrap(), Default::default()).unwrap();
        gpu.trace_with(&file, DeviceTimes::Events { every: 4 }).unwrap();
        fill(&gpu, 40);
        gpu.synchronize().unwrap();
        drop(gpu);
        let fills = fills(&file);
        let timed = fills.iter().filter(|fill| fill.2.is_some()).count();
        assert!(fills.len() >= 40 && fills.is_sorted_by_key(|fill| fill.0), "{}", fills.len());
        assert_eq!(timed, fills.len().div_ceil(4));
    }

    fn cupti_tells_when_each_submission_ran() on Machine::fake().with_library("KILN_CUPTI", CUPTI) => {
        let file = Recorded::new();
        let gpu = DeviceRuntime::from_driver(kiln_cuda::CudaDevice::open(0).unwrap(), Default::default()).unwrap();
        gpu.trace_with(&file, DeviceTimes::Cupti).unwrap();
        let taken = gpu.trace_times().unwrap();
        assert_eq!((taken.how, taken.why_not_as_asked), (DeviceTimes::Cupti, None));
        fill(&gpu, 3000);
        // Before the end, what is over is in the file.
        gpu.synchronize().unwrap();
        assert_eq!(gpu.flush_trace().unwrap().dropped, 0);
        assert!(fills(&file).iter().filter(|fill| fill.2.is_some()).count() >= 2999);
        drop(gpu);
        let fills = fills(&file);
        assert!(fills.len() >= 3000 && fills.is_sorted_by_key(|fill| fill.0));
        for (number, host, device) in &fills {
            let device = device.unwrap_or_else(|| panic!("submission {number} has no time"));
            // The first of its two kernels begins when it is submitted, the second ends when it was.
            let slack = 1_000_000;
            assert!(host.begin_ns <= device.begin_ns + slack && device.end_ns <= host.end_ns + slack,
                "{number}: {host:?} {device:?}");
        }
        assert_eq!(calls("enable"), ["1", "2", "4", "5", "10", "22", "39", "51"]);
        assert_eq!((calls("disable").len(), calls("unsubscribe")), (8, vec!["1".to_owned()]), "it ends with its recording");
        assert!(calls("cuEventRecord").len() < 20, "no events around the work: those of waits are few");
    }

    // Replaying a graph that CUPTI did not see being built ends the process, the first time that CUPTI watches as well as later.
    fn cupti_does_not_begin_while_there_are_graphs() on Machine::fake().with_library("KILN_CUPTI", CUPTI) => {
        let open = || DeviceRuntime::from_driver(kiln_cuda::CudaDevice::open(0).unwrap(), Default::default()).unwrap();
        let traced = |gpu: &DeviceRuntime| {
            let file = Recorded::new();
            gpu.trace_with(&file, DeviceTimes::Cupti).unwrap();
            gpu.trace_times().unwrap()
        };
        let graph_of = |gpu: &DeviceRuntime| {
            let buffer = gpu.zeros::<u32>(64).unwrap();
            let mut graph = gpu.graph();
            graph.fill(&buffer, 1).unwrap();
            graph.build().unwrap()
        };
        let refused = || {
            let gpu = open();
            let graph = graph_of(&gpu);
            let taken = traced(&gpu);
            let why = taken.why_not_as_asked.unwrap();
            assert_eq!(taken.how, DeviceTimes::Events { every: 1 });
            assert!(why.contains("CUPTI did not see 1 of the graphs") && why.contains("use events"), "{why}");
            graph.replay().unwrap();
            gpu.synchronize().unwrap();
        };
        refused();
        for _ in 0..2 {
            // What was built and is gone does no harm.
            let gpu = open();
            drop(graph_of(&gpu));
            assert_eq!(traced(&gpu).how, DeviceTimes::Cupti);
            graph_of(&gpu).replay().unwrap();
            gpu.synchronize().unwrap();
        }
        refused();
    }

    fn two_devices_have_their_own_times() on Machine::fake().devices(2).with_library("KILN_CUPTI", CUPTI) => {
        let files = [Recorded::new(), Recorded::new()];
        let gpus = [0, 1].map(|ordinal| {
            let device = kiln_cuda::CudaDevice::open(ordinal).unwrap();
            DeviceRuntime::from_driver(device, Default::default()).unwrap()
        });
        gpus.iter().zip(&files).for_each(|(gpu, file)| gpu.trace_with(file, DeviceTimes::Cupti).unwrap());
        for _ in 0..50 {
            gpus.iter().for_each(|gpu| fill(gpu, 3));
        }
        drop(gpus);
        for file in &files {
            let fills = fills(file);
            assert!(fills.len() >= 150 && fills.iter().all(|fill| fill.2.is_some()));
        }
        assert_eq!((calls("subscribe").len(), calls("unsubscribe").len()), (1, 1));
    }

    fn where_another_tool_has_cupti_events_are_used_and_the_tool_is_named()
    on Machine::fake().with_library("KILN_CUPTI", CUPTI).with("FAKE_CUPTI_HELD", "Nsight Systems") => {
        let file = Recorded::new();
        let gpu = DeviceRuntime::try_get(0).unwrap();
        gpu.trace_with(&file, DeviceTimes::Cupti).unwrap();
        let taken = gpu.trace_times().unwrap();
        assert_eq!(taken.how, DeviceTimes::Events { every: 1 });
        let why = taken.why_not_as_asked.unwrap();
        assert!(why.contains("CUPTI is held by Nsight Systems"), "{why}");
        fill(gpu, 10);
        gpu.synchronize().unwrap();
        gpu.flush_trace().unwrap();
        assert!(fills(&file).iter().filter(|fill| fill.2.is_some()).count() >= 10);
        assert!(calls("enable").is_empty());
    }

    fn without_the_right_to_profile_events_are_used() on
    Machine::fake().with_library("KILN_CUPTI", CUPTI).with("FAKE_CUPTI_REFUSES", "1") => {
        let file = Recorded::new();
        let gpu = DeviceRuntime::try_get(0).unwrap();
        gpu.trace_with(&file, DeviceTimes::Cupti).unwrap();
        let why = gpu.trace_times().unwrap().why_not_as_asked.unwrap();
        assert!(why.contains("CUPTI_ERROR_INSUFFICIENT_PRIVILEGES") && why.contains("35"), "{why}");
        assert_eq!(calls("unsubscribe").len(), 1, "the place of the tool is given back");
    }

    fn a_library_that_is_not_there_is_named() on Machine::fake().with("KILN_CUPTI", "/nonexistent/libcupti.so") => {
        let file = Recorded::new();
        let gpu = DeviceRuntime::try_get(0).unwrap();
        gpu.trace_with(&file, DeviceTimes::Cupti).unwrap();
        let why = gpu.trace_times().unwrap().why_not_as_asked.unwrap();
        assert!(why.contains("CUPTI is not there") && why.contains("KILN_CUPTI"), "{why}");
    }

    fn the_environment_chooses_how() on Machine::fake().with("KILN_TRACE", std::env::temp_dir().join("kiln-times-%p.kiln"))
    .with("KILN_TRACE_TIMES", "events/8") => {
        let gpu = DeviceRuntime::try_get(0).unwrap();
        assert_eq!(gpu.trace_times().unwrap().how, DeviceTimes::Events { every: 8 });
        let _ = std::fs::remove_file(std::env::temp_dir().join(format!("kiln-times-{}.kiln", std::process::id())));
    }
}
