//! What a row of mapped frames costs: time, and memory of the host that shows in no account of the program.
//!
//! Frames are mapped in rows, over and over at new addresses, and left, as a heap does it. What the process takes for them is what it has
//! resident; what the system takes is what it has available less. Other programs of the machine are in the second, so it is worth something on
//! a machine that is otherwise at rest.

use std::time::Instant;

use kiln_driver::{Driver, Object, PageRequest, PagesId, Protection, Reservation, ReserveRequest};
use kiln_mem::workload::Percentiles;

use super::Bench;
use crate::Failure;
use crate::result_table::Table;

/// Sizes of frames, in MiB.
const FRAME_MIB: [u64; 3] = [2, 8, 64];
/// Frames that are mapped again and again.
const FRAMES: usize = 64;
/// Frames in a row, as most rows of a heap have.
const ROW: usize = 16;
const ROWS: usize = 1000;

/// What the host has, in bytes.
#[derive(Clone, Copy)]
struct Host {
    resident: u64,
    available: u64,
}

/// Rows that are mapped.
struct Rows {
    window: Reservation,
    frames: Vec<PagesId>,
    row_bytes: u64,
    /// What they are, in the table.
    subject: String,
}

/// Maps rows of every size and adds what a frame of them took; unmaps them after that, because what the driver got for one size it would use for
/// the next.
pub(crate) fn cost(bench: &Bench, table: &mut Table) -> Result<(), Failure> {
    if !bench.with_kiln {
        return Ok(());
    }
    let driver = bench.driver()?;
    let mapped: Vec<Rows> =
        FRAME_MIB.into_iter().map(|mib| Rows::map(&*driver, table, mib)).collect::<Result<_, _>>()?;
    mapped.into_iter().try_for_each(|rows| rows.unmap(&*driver, table))
}

impl Rows {
    fn map(driver: &dyn Driver, table: &mut Table, mib: u64) -> Result<Self, Failure> {
        let row_bytes = (mib << 20) * ROW as u64;
        let window = driver.reserve(ReserveRequest { bytes: row_bytes * ROWS as u64, at: None })?;
        let request = PageRequest { bytes: mib << 20, exportable: false };
        let frames: Vec<PagesId> =
            (0..FRAMES).map(|_| driver.create_pages(request)).collect::<Result<_, _>>()?;
        let before = Host::look()?;
        let start = Instant::now();
        for row in 0..ROWS {
            let pages: Vec<PagesId> = (0..ROW).map(|at| frames[(row * 7 + at * 3) % FRAMES]).collect();
            driver.map(window.id, row as u64 * row_bytes, &pages, Protection::ReadWrite)?;
        }
        let time = start.elapsed();
        let after = Host::look()?;
        let subject = format!("a frame of {mib} MiB, in rows of {ROW}");
        table.add("mapping, time", &subject, each(time.as_nanos() as f64));
        let process = after.resident as f64 - before.resident as f64;
        table.add_in("bytes", "mapping, host memory of the process", &subject, each(process));
        let machine = before.available as f64 - after.available as f64;
        table.add_in("bytes", "mapping, host memory of the machine", &subject, each(machine));
        Ok(Self { window, frames, row_bytes, subject })
    }

    fn unmap(self, driver: &dyn Driver, table: &mut Table) -> Result<(), Failure> {
        let start = Instant::now();
        for row in 0..ROWS as u64 {
            driver.unmap(self.window.id, row * self.row_bytes, self.row_bytes)?;
        }
        table.add("unmapping, time", &self.subject, each(start.elapsed().as_nanos() as f64));
        for frame in self.frames {
            driver.destroy(frame.into())?;
        }
        Ok(driver.destroy(Object::Reservation(self.window.id))?)
    }
}

/// What all of them took, for each frame.
fn each(all: f64) -> Percentiles {
    let each = all / (ROW * ROWS) as f64;
    Percentiles { p50: each, p99: each }
}

impl Host {
    fn look() -> Result<Self, Failure> {
        let kib = |file: &str, name: &str| {
            let text = std::fs::read_to_string(file)?;
            let line = text.lines().find_map(|line| line.strip_prefix(name));
            let number = line.and_then(|rest| rest.split_whitespace().next());
            number.ok_or_else(|| format!("{file} has no {name}"))?.parse::<u64>().map_err(Failure::from)
        };
        let resident = kib("/proc/self/status", "VmRSS:")? << 10;
        Ok(Self { resident, available: kib("/proc/meminfo", "MemAvailable:")? << 10 })
    }
}
