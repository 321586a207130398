//! Recordings of a GPU, where the device's times are not taken: what each launch notes, and what that costs. A library stands in for the
//! driver.

use std::time::Instant;

use kiln::trace::{SubmissionKind, TraceEvent};
use kiln::{DeviceRuntime, GpuRef, Kernel, Stream};
use kiln_driver::Image;

use crate::Recorded;
use crate::counted_allocations::allocations;
use crate::machine::Machine;

/// A kernel with two buffers.
const TWO: &str = "
.version 8.0
.target sm_80
.address_size 64
.visible .entry two(.param .u64 a, .param .u64 b)
{
    ret;
}
";

pub(crate) struct Scene {
    pub(crate) gpu: &'static DeviceRuntime,
    kernel: Kernel,
    buffers: [GpuRef<u32>; 2],
    file: Recorded,
}

impl Scene {
    fn new() -> Self {
        let file = Recorded::new();
        DeviceRuntime::try_get(0).unwrap().trace(&file).unwrap();
        Self { file, ..Self::unrecorded() }
    }

    pub(crate) fn unrecorded() -> Self {
        let (gpu, file) = (DeviceRuntime::try_get(0).unwrap(), Recorded::new());
        let kernel = gpu.load_kernel(&Image::Ptx(TWO), "two", None).unwrap();
        let buffers = [gpu.zeros(64).unwrap(), gpu.zeros(64).unwrap()];
        Self { gpu, kernel, buffers, file }
    }

    #[track_caller]
    pub(crate) fn launch(&self, stream: &Stream, x: u32) {
        let mut launch = self.gpu.launch(&self.kernel);
        launch.grid((x, 2, 3)).block((4, 5, 6));
        launch.on(stream).read_write(&self.buffers[0]).read(&self.buffers[1]);
        // SAFETY: the kernel does nothing.
        unsafe { launch.submit() }.unwrap();
    }
}

on_machine! {
    fn a_recorded_launch_takes_nothing_from_the_heap_and_asks_for_no_event() on Machine::fake().quiet() => {
        let scene = Scene::new();
        let streams = [scene.gpu.main_stream().clone(), scene.gpu.stream().unwrap()];
        let run = || for at in 0..4096 {
            scene.launch(&streams[at / 8 % 2], 1);
        };
        // Lanes and events are made with the first.
        run();
        assert_eq!(allocations(run), 0);
    }

    fn every_launch_has_its_kernel_its_line_its_shape_and_its_time() on Machine::fake().quiet() => {
        let scene = Scene::new();
        let began = Instant::now();
        let line = line!() + 2;
        for x in 1..=3000 {
            scene.launch(scene.gpu.main_stream(), x);
        }
        let took = began.elapsed().as_nanos() as u64;
        let totals = scene.gpu.flush_trace().unwrap();
        assert_eq!((totals.dropped, totals.failure), (0, None));
        let (mut launches, mut last) = (Vec::new(), 0);
        scene.file.each(|event| {
            let TraceEvent::Submission(work) = event else { return };
            assert!(work.stamp.number > last, "in order");
            last = work.stamp.number;
            if work.kind == SubmissionKind::Kernel {
                let size = work.size.unwrap();
                assert_eq!((work.name, size.block, work.device), ("two", [4, 5, 6], None));
                assert_eq!(&size.grid[1..], [2, 3]);
                let at = work.line.unwrap();
                assert_eq!((at.file, at.line), (file!(), line));
                launches.push((size.grid[0], work.host));
            }
        });
        assert!(launches.iter().map(|launch| launch.0).eq(1..=3000), "{}", launches.len());
        assert!(launches.is_sorted_by_key(|launch| launch.1.begin_ns));
        assert!(launches.windows(2).all(|two| two[0].1.end_ns <= two[1].1.begin_ns + 1), "one thread, one at a time");
        let recorded = launches[2999].1.end_ns - launches[0].1.begin_ns;
        assert!(launches.iter().any(|launch| launch.1.ns() > 0) && recorded <= took + 2_000, "{recorded} of {took} ns");
        assert!(recorded > took / 2, "the counter has the pace of the clock: {recorded} of {took} ns");
    }

    fn threads_that_share_a_stream_lose_no_launch() on Machine::fake().quiet() => {
        let scene = Scene::new();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..1000).for_each(|_| scene.launch(scene.gpu.main_stream(), 7)));
            }
        });
        let totals = scene.gpu.flush_trace().unwrap();
        assert_eq!(totals.dropped, 0);
        let mut numbers = Vec::new();
        scene.file.each(|event| {
            if let TraceEvent::Submission(work) = event && work.kind == SubmissionKind::Kernel {
                numbers.push(work.stamp.number);
            }
        });
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), 4000);
    }
}
