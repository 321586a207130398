//! Measures library calls: how long a submission takes the host, and how long a call takes until it is done where many are queued.

use std::sync::Arc;
use std::time::Duration;

use kiln::{DeviceRuntime, RuntimeConfig};
use kiln_driver::{Clock, DeviceKind, Driver, WallClock};
use kiln_libs::LibraryError;
use kiln_mem::workload::Percentiles;

use super::Workload;
use super::library_calls::MeasuredCall;
use super::table::{Row, Table};
use crate::console::Console;
use crate::failure::Failure;

/// Calls that are queued one behind the other, on a GPU and on the simulated device.
const CALLS: [u32; 2] = [100, 5];

/// Adds two rows for each call, or a note where the library of one cannot be used.
pub(super) fn measure(
    workloads: &[Workload],
    driver: Arc<dyn Driver>,
    repeats: u32,
    (table, console): (&mut Table, &mut Console),
) -> Result<(), Failure> {
    let gpu = DeviceRuntime::from_driver(driver, RuntimeConfig::default())?;
    for workload in workloads {
        match rows(*workload, &gpu, repeats) {
            Ok(rows) => rows.into_iter().for_each(|row| table.add(console, row)),
            Err(error) if error.library().is_some() => {
                table.note(console, &format!("{} is not measured: {error}", workload.word()));
            }
            Err(error) => return Err(Failure::from(kiln::Error::from(error))),
        }
    }
    Ok(())
}

fn rows(workload: Workload, gpu: &DeviceRuntime, repeats: u32) -> Result<Vec<Row>, LibraryError> {
    let Some(measured) = MeasuredCall::of(workload, gpu).transpose()? else { return Ok(Vec::new()) };
    let MeasuredCall { name, call } = measured;
    let [on_gpu, simulated] = CALLS;
    let calls = if gpu.info().kind == DeviceKind::Simulated { simulated } else { on_gpu };
    // The first loads the operation and its kernels, and what is kept for the next is there after the second.
    for _ in 0..2 {
        call()?;
        gpu.synchronize()?;
    }
    let clock = WallClock::new();
    let (mut submitted, mut done) = (Vec::new(), Vec::new());
    for _ in 0..repeats {
        let begin = clock.now();
        (0..calls).try_for_each(|_| call())?;
        let queued = clock.now();
        gpu.synchronize()?;
        let each = |until: Duration| until.saturating_sub(begin).as_secs_f64() / f64::from(calls);
        submitted.push(each(queued) * 1e9);
        done.push(each(clock.now()) * 1e6);
    }
    let row = |what: &str, values: Vec<f64>, unit: &str| {
        let Percentiles { p50, p99 } = Percentiles::of(values);
        let workload = format!("{} {what}", workload.word());
        Row { workload, subject: name.clone(), p50, p99, unit: unit.to_owned() }
    };
    Ok(vec![row("submitted", submitted, "ns"), row("done", done, "us")])
}
