//! A1: awaiting a launch against blocking on it: one that is done already, a short one there and back, and one of about a millisecond.

#[path = "../../../examples/block_on.rs"]
mod block_on;

use std::time::Instant;

use block_on::block_on;
use kiln::{DeviceRuntime, GpuRef, Kernel, Ticket};
use kiln_driver::DriverExt;

use crate::Failure;
use crate::result_table::Table;
use crate::timing::Percentiles;
use crate::workload::launch::{kernel, runtime};

/// Measurements of each kind in one repeat.
const SAMPLES: usize = 400;
const LONG_SAMPLES: usize = 100;
/// Clocks of a kernel of about a millisecond.
const LONG_CLOCKS: i64 = 1_800_000;

/// What is timed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Timed {
    /// The wait alone, when the device is done and the runtime does not know it yet.
    Wait,
    /// Launch and wait.
    RoundTrip,
}

pub(crate) fn awaited(table: &mut Table, repeats: usize) -> Result<(), Failure> {
    awaited_on(runtime()?, "", table, repeats)
}

/// A1 on a runtime of one's own, which the rows name.
pub(crate) fn awaited_on(
    gpu: DeviceRuntime,
    place: &str,
    table: &mut Table,
    repeats: usize,
) -> Result<(), Failure> {
    let rig = Rig { spin: kernel(&gpu, "spin")?, buffer: gpu.zeros(2)?, gpu };
    let kinds = [
        ("a1", "a launch that is done", Timed::Wait, 0, SAMPLES),
        ("a1r", "an empty launch, there and back", Timed::RoundTrip, 0, SAMPLES),
        ("a1l", "a launch of 1 ms, there and back", Timed::RoundTrip, LONG_CLOCKS, LONG_SAMPLES),
    ];
    for (name, what, timed, clocks, samples) in kinds {
        let (mut blocked, mut awaited) = (Vec::new(), Vec::new());
        for _ in 0..repeats {
            blocked.push(rig.measure(timed, clocks, samples, |ticket| ticket.wait())?);
            awaited.push(rig.measure(timed, clocks, samples, |ticket| block_on(ticket.into_future()))?);
        }
        table.add(name, format!("kiln{place}, blocking on {what}"), Percentiles::median(&blocked));
        table.add(name, format!("kiln{place}, awaiting {what}"), Percentiles::median(&awaited));
    }
    Ok(())
}

struct Rig {
    gpu: DeviceRuntime,
    spin: Kernel,
    buffer: GpuRef<f32>,
}

impl Rig {
    fn measure(
        &self,
        timed: Timed,
        clocks: i64,
        samples: usize,
        wait: impl Fn(Ticket) -> kiln::Result<()>,
    ) -> Result<Percentiles, Failure> {
        let mut values = Vec::with_capacity(samples);
        for _ in 0..samples {
            let mut start = Instant::now();
            let ticket = self.launch(clocks)?;
            if timed == Timed::Wait {
                // Asked below the runtime, which learns nothing by it.
                self.gpu.driver().synchronize(self.gpu.main_stream().id())?;
                start = Instant::now();
            }
            wait(ticket)?;
            values.push(start.elapsed().as_nanos() as f64);
        }
        Ok(Percentiles::of(values))
    }

    fn launch(&self, clocks: i64) -> Result<Ticket, Failure> {
        let mut launch = self.gpu.launch(&self.spin);
        launch.grid(1).block(1);
        launch.on(self.gpu.main_stream()).write(&self.buffer).value(clocks);
        // SAFETY: the kernel touches nothing when its last argument is not negative.
        Ok(unsafe { launch.submit() }?)
    }
}
