//! CUPTI's times beside those of events: needs a GPU and libcupti, and is counted as skipped where there is none.

use std::sync::{Mutex, MutexGuard, PoisonError};

use kiln::DeviceRuntime;
use kiln::probe::TestGate;
use kiln::telemetry::DeviceTimes;
use kiln::trace::{SubmissionKind, TimeSpan, TraceEvent};
use kiln_driver::{DeviceKind, Image};

use crate::Recorded;

const LAUNCHES: usize = 2000;

/// Programs of several processes take turns on a GPU in slices of milliseconds, which are in the times of their kernels: the tests that look
/// at times hold this one after the other.
pub(crate) fn alone() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Spins for about as many nanoseconds as it is told.
pub(crate) const SPIN: &str = "
.version 7.0
.target sm_70
.address_size 64
.visible .entry spin(.param .u64 ns)
{
    .reg .pred %p;
    .reg .u64 %rd<4>;
    ld.param.u64 %rd1, [ns];
    mov.u64 %rd2, %globaltimer;
    add.u64 %rd2, %rd2, %rd1;
again:
    mov.u64 %rd3, %globaltimer;
    setp.lt.u64 %p, %rd3, %rd2;
    @%p bra again;
    ret;
}
";

/// When the kernels and the graph of a recording ran.
fn times(file: &Recorded) -> (Vec<Option<TimeSpan>>, Vec<Option<TimeSpan>>) {
    let (mut kernels, mut graphs) = (Vec::new(), Vec::new());
    file.each(|event| {
        if let TraceEvent::Submission(work) = event {
            match work.kind {
                SubmissionKind::Kernel => kernels.push(work.device),
                SubmissionKind::Graph => graphs.push(work.device),
                _ => {}
            }
        }
    });
    (kernels, graphs)
}

/// The times of kernels and of graphs.
type Times = (Vec<Option<TimeSpan>>, Vec<Option<TimeSpan>>);

fn run(ordinal: u32, how: DeviceTimes) -> Option<Times> {
    let device = kiln_cuda::CudaDevice::open(ordinal).unwrap();
    run_on(DeviceRuntime::from_driver(device, Default::default()).unwrap(), how)
}

fn run_on(gpu: DeviceRuntime, how: DeviceTimes) -> Option<Times> {
    let file = Recorded::new();
    gpu.trace_with(&file, how).unwrap();
    if let Some(why) = gpu.trace_times().unwrap().why_not_as_asked {
        kiln::probe::count_skip("recording: times by CUPTI", &why).unwrap();
        return None;
    }
    let spin = gpu.load_kernel(&Image::Ptx(SPIN), "spin", None).unwrap();
    for _ in 0..LAUNCHES {
        let mut launch = gpu.launch(&spin);
        launch.grid(1).block(1);
        launch.value(10_000_u64);
        // SAFETY: the kernel touches no memory.
        unsafe { launch.submit() }.unwrap();
    }
    let mut builder = gpu.graph();
    for _ in 0..10 {
        let mut launch = builder.launch(&spin);
        launch.grid(1).block(1);
        launch.value(10_000_u64);
        // SAFETY: the kernel touches no memory.
        unsafe { launch.record() }.unwrap();
    }
    let graph = builder.build().unwrap();
    graph.replay().unwrap();
    gpu.synchronize().unwrap();
    drop((graph, spin, gpu));
    Some(times(&file))
}

/// CUPTI is loaded in the worker, which this process has not done with it before.
#[test]
fn a_worker_tells_when_kernels_ran_by_cupti() {
    let test = "recording: times by CUPTI in a worker";
    let TestGate::Ready(gpu) = kiln::probe::gpu_for_test(test).unwrap() else { return };
    if gpu.info().kind != DeviceKind::Cuda {
        return;
    }
    let _alone = alone();
    let gpu = crate::worker_times::isolated(&kiln::recovery::DeviceSpec::cuda(gpu.ordinal()));
    let Some((kernels, graphs)) = run_on(gpu, DeviceTimes::Cupti) else { return };
    let known: Vec<TimeSpan> = kernels.iter().flatten().copied().collect();
    assert_eq!((kernels.len(), known.len()), (LAUNCHES, LAUNCHES), "every kernel has a time");
    let ordered = |two: &[TimeSpan]| two[0].end_ns <= two[1].begin_ns + 1_000_000;
    assert!(known.windows(2).all(ordered), "in the order of the stream, but for the comparison of clocks");
    assert!(known.iter().all(|time| (9_000..1_000_000).contains(&time.ns())));
    assert!(graphs.iter().flatten().all(|graph| graph.ns() >= 9_000) && graphs[0].is_some(), "{graphs:?}");
}

#[test]
fn cupti_and_events_agree_on_when_kernels_ran() {
    let TestGate::Ready(gpu) = kiln::probe::gpu_for_test("recording: times by CUPTI").unwrap() else {
        return;
    };
    if gpu.info().kind != DeviceKind::Cuda {
        return;
    }
    let _alone = alone();
    let ordinal = gpu.ordinal();
    let Some((by_events, _)) = run(ordinal, DeviceTimes::Events { every: 1 }) else { return };
    let Some((by_cupti, graphs)) = run(ordinal, DeviceTimes::Cupti) else { return };
    assert_eq!((by_cupti.len(), graphs.len()), (LAUNCHES, 1));
    let known: Vec<TimeSpan> = by_cupti.iter().flatten().copied().collect();
    assert_eq!(known.len(), LAUNCHES, "every kernel has a time");
    assert!(
        known.windows(2).all(|two| two[0].end_ns <= two[1].begin_ns + 1000),
        "in the order of the stream"
    );
    let mean = |times: &[TimeSpan]| times.iter().map(|time| time.ns()).sum::<u64>() / times.len() as u64;
    let events: Vec<TimeSpan> = by_events.iter().flatten().copied().collect();
    let (cupti, events) = (mean(&known), mean(&events));
    assert!((9_000..40_000).contains(&cupti), "{cupti} ns by CUPTI");
    // Events stand around a kernel, and see the gaps beside it, too.
    assert!(events + 500 >= cupti && events < cupti + 10_000, "{cupti} ns by CUPTI, {events} by events");
    // Kernels of a graph without edges run beside each other.
    assert!(graphs[0].is_some_and(|graph| graph.ns() >= 9_000), "{graphs:?}");
}
