//! L6: what the ways to know when recorded work ran add to kernels of 10 us and to replays of a graph of 100 nodes.
//!
//! Kernels and replays are timed until they are done, a batch at a time, so that what a way adds on the device counts as well as what it adds on the host.
//! CUPTI comes last, and then what remains of it: a process pays for it to its end.

use std::time::Instant;

use kiln::telemetry::DeviceTimes;
use kiln::{DeviceRuntime, GpuRef, Graph, Kernel};

use crate::Failure;
use crate::result_table::Table;
use crate::timing::{Percentiles, in_turn, subject};
use crate::workload::launch::{TemporaryRecording, kernel, runtime};

/// How long each kernel runs, about.
const KERNEL_NS: f64 = 10_000.0;
/// Kernels that are launched before the program waits.
const KERNELS: usize = 100;
/// Nodes of the graph.
const NODES: usize = 100;
/// Clocks of the processor in the first try, from which the wanted number follows.
const TRIED_CLOCKS: i64 = 1_000_000;
const ROUNDS: usize = 100;

/// The work that is timed.
struct Work {
    gpu: DeviceRuntime,
    spin: Kernel,
    buffer: GpuRef<f32>,
    clocks: i64,
    graph: Graph,
}

/// Kernels and graphs without a recording, and recorded in each way but CUPTI.
pub(crate) fn without_cupti(table: &mut Table, repeats: usize) -> Result<(), Failure> {
    measure(table, repeats, "not recorded", None)?;
    let ways = [DeviceTimes::HostOnly, DeviceTimes::Events { every: 1 }, DeviceTimes::Events { every: 16 }];
    ways.into_iter().try_for_each(|times| measure_recorded(table, repeats, times))
}

/// The same with CUPTI's times, and without a recording in a process that has used CUPTI.
pub(crate) fn with_cupti(table: &mut Table, repeats: usize) -> Result<(), Failure> {
    measure_recorded(table, repeats, DeviceTimes::Cupti)?;
    measure(table, repeats, "not recorded, after CUPTI", None)
}

fn measure_recorded(table: &mut Table, repeats: usize, times: DeviceTimes) -> Result<(), Failure> {
    measure(table, repeats, &format!("recorded, times by {times}"), Some(times))
}

fn measure(table: &mut Table, repeats: usize, how: &str, times: Option<DeviceTimes>) -> Result<(), Failure> {
    let file = TemporaryRecording::new();
    let gpu = runtime()?;
    // Before the graph is built: CUPTI is to see that.
    if let Some(times) = times {
        gpu.trace_with(file.path(), times)?;
        if let Some(why) = gpu.trace_times().and_then(|taken| taken.why_not_as_asked) {
            table.note(format!("l6: no times by {times}: {why}"));
            return Ok(());
        }
    }
    let work = Work::new(gpu)?;
    let settled = || Ok(());
    let [kernels, replays, queued] = in_turn(
        ROUNDS * repeats,
        [
            subject(1, || work.launch_all(), settled),
            subject(1, || work.replay_until_done(), settled),
            subject(1, || work.replay(), || Ok(work.gpu.synchronize()?)),
        ],
    )?;
    table.add("l6", format!("kernel of 10 us, until done, {how}"), of_each(kernels, KERNELS));
    table.add("l6", format!("graph of {NODES} nodes, until done, {how}"), replays);
    table.add("l6", format!("graph of {NODES} nodes, queueing, {how}"), queued);
    Ok(())
}

/// The time of one of several.
fn of_each(Percentiles { p50, p99 }: Percentiles, count: usize) -> Percentiles {
    Percentiles { p50: p50 / count as f64, p99: p99 / count as f64 }
}

impl Work {
    fn new(gpu: DeviceRuntime) -> Result<Self, Failure> {
        let (spin, one) = (kernel(&gpu, "spin")?, kernel(&gpu, "one")?);
        let buffer = gpu.zeros::<f32>(1024)?;
        let mut builder = gpu.graph();
        for _ in 0..NODES {
            let mut launch = builder.launch(&one);
            launch.grid(1).block(1);
            launch.read_write(&buffer).value(0_i32);
            // SAFETY: the kernel touches nothing when its last argument is not negative.
            unsafe { launch.record() }?;
        }
        let graph = builder.build()?;
        let mut work = Self { gpu, spin, buffer, clocks: TRIED_CLOCKS, graph };
        work.choose_clocks()?;
        Ok(work)
    }

    /// Finds out how many clocks of the processor a kernel is to spin.
    fn choose_clocks(&mut self) -> Result<(), Failure> {
        self.launch()?;
        self.gpu.synchronize()?;
        let begin = Instant::now();
        self.launch()?;
        self.gpu.synchronize()?;
        let took = begin.elapsed().as_nanos() as f64;
        self.clocks = (TRIED_CLOCKS as f64 * KERNEL_NS / took.max(KERNEL_NS)) as i64;
        Ok(())
    }

    fn launch(&self) -> Result<(), Failure> {
        let mut launch = self.gpu.launch(&self.spin);
        launch.grid(1).block(1);
        launch.write(&self.buffer).value(self.clocks);
        // SAFETY: the kernel touches nothing when its last argument is not negative.
        unsafe { launch.submit() }?;
        Ok(())
    }

    fn launch_all(&self) -> Result<(), Failure> {
        (0..KERNELS).try_for_each(|_| self.launch())?;
        Ok(self.gpu.synchronize()?)
    }

    fn replay(&self) -> Result<(), Failure> {
        self.graph.replay()?;
        Ok(())
    }

    fn replay_until_done(&self) -> Result<(), Failure> {
        self.replay()?;
        Ok(self.gpu.synchronize()?)
    }
}
