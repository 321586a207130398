//! Graphs beside recordings that have their times from CUPTI: needs a GPU and libcupti, and is counted as skipped where there is none.
//! Replaying a graph that CUPTI does not know ended the process that did it, so each program is a separate process.

use std::process::Command;

use kiln::probe::TestGate;
use kiln::telemetry::DeviceTimes;
use kiln::trace::{SubmissionKind, TraceEvent};
use kiln::{DeviceRuntime, Graph};
use kiln_driver::{DeviceKind, Image};

use crate::Recorded;
use crate::on_gpu::SPIN;

/// Says which program a child runs, and on which device.
const PROGRAM: &str = "KILN_TEST_GRAPH_PROGRAM";
const NODES: usize = 20;
const REPLAYS: usize = 50;

fn open(ordinal: u32) -> DeviceRuntime {
    let device = kiln_cuda::CudaDevice::open(ordinal).unwrap();
    DeviceRuntime::from_driver(device, Default::default()).unwrap()
}

/// Twenty kernels that spin for 10 µs each.
fn spinning_graph(gpu: &DeviceRuntime) -> Graph {
    let spin = gpu.load_kernel(&Image::Ptx(SPIN), "spin", None).unwrap();
    let mut builder = gpu.graph();
    for _ in 0..NODES {
        let mut launch = builder.launch(&spin);
        launch.grid(1).block(1);
        launch.value(10_000_u64);
        // SAFETY: the kernel touches no memory.
        unsafe { launch.record() }.unwrap();
    }
    builder.build().unwrap()
}

fn replay(gpu: &DeviceRuntime, graph: &Graph) {
    for _ in 0..REPLAYS {
        graph.replay().unwrap();
    }
    gpu.synchronize().unwrap();
}

/// Replays of a recording, and how many of them have a time that the kernels of one need at least.
fn replays(file: &Recorded) -> (usize, usize) {
    let (mut all, mut timed) = (0, 0);
    file.each(|event| {
        if let TraceEvent::Submission(work) = event
            && work.kind == SubmissionKind::Graph
        {
            all += 1;
            timed += usize::from(work.device.is_some_and(|time| time.ns() >= 9_000));
        }
    });
    (all, timed)
}

/// Records replays of a graph; what the recording says, and which times it took.
fn recorded(gpu: DeviceRuntime, graph: Option<Graph>) -> (DeviceTimes, Option<String>, (usize, usize)) {
    let file = Recorded::new();
    gpu.trace_with(&file, DeviceTimes::Cupti).unwrap();
    let taken = gpu.trace_times().unwrap();
    let graph = graph.unwrap_or_else(|| spinning_graph(&gpu));
    replay(&gpu, &graph);
    drop((graph, gpu));
    (taken.how, taken.why_not_as_asked, replays(&file))
}

#[test]
#[ignore = "helper process"]
fn graph_program() {
    let Ok(plan) = std::env::var(PROGRAM) else { return };
    let (program, ordinal) = plan.split_once(' ').unwrap();
    let ordinal: u32 = ordinal.parse().unwrap();
    let gpu = open(ordinal);
    match program {
        // A graph that was built, and replayed, before the first recording.
        "built-before" => {
            let graph = spinning_graph(&gpu);
            replay(&gpu, &graph);
            let (how, why, counts) = recorded(gpu, Some(graph));
            println!("{how:?} {why:?} {counts:?}");
            assert_eq!(how, DeviceTimes::Events { every: 1 });
            assert!(why.unwrap().contains("did not see 1 of the graphs"));
            assert_eq!(counts, (REPLAYS, REPLAYS));
        }
        // A graph that is built between two recordings is there when the second begins.
        "built-between" => {
            assert_eq!(recorded(gpu, None).2, (REPLAYS, REPLAYS));
            let gpu = open(ordinal);
            let graph = spinning_graph(&gpu);
            let (how, why, counts) = recorded(gpu, Some(graph));
            println!("{how:?} {why:?} {counts:?}");
            assert_eq!(how, DeviceTimes::Events { every: 1 });
            assert!(why.unwrap().contains("did not see 1 of the graphs"));
            assert_eq!(counts, (REPLAYS, REPLAYS));
        }
        // Without graphs CUPTI begins again, and knows those that are built then.
        "built-in-both" => {
            for gpu in [gpu, open(ordinal)] {
                let (how, why, counts) = recorded(gpu, None);
                println!("{how:?} {why:?} {counts:?}");
                assert_eq!((how, counts), (DeviceTimes::Cupti, (REPLAYS, REPLAYS)));
            }
        }
        other => panic!("no program {other}"),
    }
}

fn runs_on_a_gpu(program: &str) {
    let test = format!("recording: graphs with CUPTI, {program}");
    let TestGate::Ready(gpu) = kiln::probe::gpu_for_test(&test).unwrap() else { return };
    if gpu.info().kind != DeviceKind::Cuda {
        return;
    }
    let _alone = crate::on_gpu::alone();
    let ordinal = gpu.ordinal();
    let ran = Command::new(std::env::current_exe().unwrap())
        .args(["graphs_on_gpu::graph_program", "--exact", "--include-ignored", "--nocapture"])
        .env(PROGRAM, format!("{program} {ordinal}"))
        .output()
        .unwrap();
    let words = format!("{}{}", String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    assert!(ran.status.success() && words.contains("1 passed"), "{}: {words}", ran.status);
}

#[test]
fn a_graph_that_was_built_before_a_recording_is_replayed_with_times_of_events() {
    runs_on_a_gpu("built-before");
}

#[test]
fn a_graph_that_was_built_between_recordings_is_replayed_with_times_of_events() {
    runs_on_a_gpu("built-between");
}

#[test]
fn graphs_of_each_recording_have_the_times_of_cupti() {
    runs_on_a_gpu("built-in-both");
}
