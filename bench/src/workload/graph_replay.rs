//! G1: a recorded sequence of launches, replayed.
//!
//! Each launch reads and writes one buffer, so they run one after the other, on both sides. Queueing is what the host pays; until done is
//! from the call to the end of the work. The batches are small enough that the device's queue never makes the host wait.

use kiln::{DeviceRuntime, GpuRef, Graph, Kernel};

use crate::Failure;
use crate::raw_driver::{self, Raw};
use crate::result_table::Table;
use crate::timing::{in_turn, subject};
use crate::workload::launch::{kernel, runtime};
use crate::workload::untracked_graph::Untracked;

/// Launches in a sequence, the workload's name, replays in a batch, and batches.
const SIZES: [(usize, &str, usize, usize); 5] = [
    (1, "g1.1", 100, 400),
    (3, "g1.3", 100, 400),
    (10, "g1.10", 50, 200),
    (100, "g1.c", 5, 200),
    (1000, "g1.m", 1, 100),
];

pub(crate) fn replayed(table: &mut Table, repeats: usize) -> Result<(), Failure> {
    let raw = Raw::new()?;
    let function = raw.function("one")?;
    let mut packed = raw.memory(4096)?.to_ne_bytes().to_vec();
    packed.extend(0_i32.to_ne_bytes());
    let gpu = runtime()?;
    let one = kernel(&gpu, "one")?;
    let buffer = gpu.zeros::<f32>(1024)?;
    for (launches, workload, batch, count) in SIZES {
        let subjects = Subjects {
            stream: raw.stream()?,
            event: raw.event()?,
            raw: raw.chain(function, &packed, launches)?,
            untracked: Untracked::chain(gpu.driver(), &packed, launches)?,
            graph: recorded(&gpu, &one, &buffer, launches)?,
            gpu: &gpu,
            one: &one,
            buffer: &buffer,
            launches,
        };
        subjects.queueing(table, workload, repeats, batch, count)?;
        subjects.until_done(table, workload, repeats, count)?;
    }
    Ok(())
}

fn recorded(
    gpu: &DeviceRuntime,
    one: &Kernel,
    buffer: &GpuRef<f32>,
    launches: usize,
) -> Result<Graph, Failure> {
    let mut builder = gpu.graph();
    for _ in 0..launches {
        let mut launch = builder.launch(one);
        launch.grid(1).block(1);
        launch.read_write(buffer).value(0_i32);
        // SAFETY: the kernel touches nothing when its last argument is not negative.
        unsafe { launch.record() }?;
    }
    Ok(builder.build()?)
}

/// The same sequence, four ways.
struct Subjects<'a> {
    stream: cudarc::driver::sys::CUstream,
    event: cudarc::driver::sys::CUevent,
    raw: cudarc::driver::sys::CUgraphExec,
    untracked: Untracked,
    graph: Graph,
    gpu: &'a DeviceRuntime,
    one: &'a Kernel,
    buffer: &'a GpuRef<f32>,
    launches: usize,
}

impl Subjects<'_> {
    /// Between batches all subjects wait in the same way, so that none begins the next one with a core that has slept.
    fn queueing(
        &self,
        table: &mut Table,
        workload: &'static str,
        repeats: usize,
        batch: usize,
        count: usize,
    ) -> Result<(), Failure> {
        let settle = || raw_driver::settle().and_then(|()| Ok(self.gpu.synchronize()?));
        let measured = in_turn(
            count * repeats,
            [
                subject(batch, || self.raw_launch(), settle),
                subject(batch, || self.untracked.replay(), settle),
                subject(batch, || self.replay(), settle),
                subject(1, || self.launch_each(), settle),
            ],
        )?;
        let launches = self.launches;
        let subjects = [
            format!("raw cuGraphLaunch of {launches}"),
            format!("kiln's driver, replay of {launches}"),
            format!("kiln, replay of {launches}"),
            format!("kiln, {launches} single launches"),
        ];
        subjects.into_iter().zip(measured).for_each(|(subject, spread)| table.add(workload, subject, spread));
        Ok(())
    }

    /// A raw wait spins inside of the driver. Polling an event is what a wait with a deadline can be made of, so it stands between that and
    /// kiln's.
    fn until_done(
        &self,
        table: &mut Table,
        workload: &'static str,
        repeats: usize,
        count: usize,
    ) -> Result<(), Failure> {
        let finish = || Ok::<(), Failure>(self.gpu.main_stream().synchronize()?);
        let settled = || Ok(());
        let measured = in_turn(
            count * repeats,
            [
                subject(1, || self.raw_launch().and_then(|()| raw_driver::synchronize(self.stream)), settled),
                subject(
                    1,
                    || self.raw_launch().and_then(|()| raw_driver::poll(self.event, self.stream)),
                    settled,
                ),
                subject(1, || self.untracked.replay().and_then(|()| self.untracked.finish()), settled),
                subject(1, || self.replay().and_then(|()| finish()), settled),
                subject(1, || self.launch_each().and_then(|()| finish()), settled),
            ],
        )?;
        let subjects = [
            "raw cuGraphLaunch + cuStreamSynchronize, until done",
            "raw cuGraphLaunch + cuEventQuery, until done",
            "kiln's driver, replay, until done",
            "kiln, replay, until done",
            "kiln, single launches, until done",
        ];
        for (subject, spread) in subjects.into_iter().zip(measured) {
            table.add(format!("{workload}.done"), subject, spread);
        }
        Ok(())
    }

    fn raw_launch(&self) -> Result<(), Failure> {
        raw_driver::launch_graph(self.raw, self.stream)
    }

    fn replay(&self) -> Result<(), Failure> {
        self.graph.replay()?;
        Ok(())
    }

    fn launch_each(&self) -> Result<(), Failure> {
        for _ in 0..self.launches {
            let mut launch = self.gpu.launch(self.one);
            launch.grid(1).block(1);
            launch.read_write(self.buffer).value(0_i32);
            // SAFETY: the kernel touches nothing when its last argument is not negative.
            unsafe { launch.submit() }?;
        }
        Ok(())
    }
}
