//! The rows, and how they are measured.

use std::ffi::CStr;
use std::time::Instant;

use super::api::Api;
use super::below::Below;

type Failure = Box<dyn std::error::Error>;

/// Bytes of a piece of memory.
pub(crate) const BYTES: usize = 4096;
pub(crate) const KERNEL: &CStr = c"add";
/// Calls of a batch, and batches of each side.
const BATCH: usize = 100;
const BATCHES: usize = 200;

/// Adds a number to 32 of 1,024 words; it has four pointers and a number.
const CODE: &CStr = c".version 8.0\n.target sm_80\n.address_size 64\n\
    .visible .entry add(.param .u64 a, .param .u64 b, .param .u64 c, .param .u64 d, .param .u32 n)\n{\n\
    .reg .b32 %r<4>;\n.reg .b64 %d<6>;\n\
    ld.param.u64 %d1, [a];\nld.param.u64 %d2, [b];\nld.param.u32 %r1, [n];\n\
    cvta.to.global.u64 %d1, %d1;\ncvta.to.global.u64 %d2, %d2;\nmov.u32 %r2, %tid.x;\n\
    mul.wide.u32 %d3, %r2, 4;\nadd.s64 %d1, %d1, %d3;\nadd.s64 %d2, %d2, %d3;\n\
    ld.global.u32 %r3, [%d2];\nadd.u32 %r3, %r3, %r1;\nst.global.u32 [%d1], %r3;\nret;\n}\n";

/// A piece of work.
#[derive(Clone, Copy)]
pub(crate) enum Work {
    CurrentContext,
    Record,
    WaitForEvent,
    AskEvent,
    Fill,
    Copy,
    AllocateAndFree,
    Launch,
    LaunchFromHeap,
}

/// The names of the rows, with how many calls one piece of work is.
const ROWS: [(&str, Work, usize); 9] = [
    ("current context", Work::CurrentContext, 1),
    ("record an event", Work::Record, 1),
    ("wait for an event", Work::WaitForEvent, 1),
    ("ask an event", Work::AskEvent, 1),
    ("fill 4 KiB", Work::Fill, 1),
    ("copy 4 KiB", Work::Copy, 1),
    ("allocate and free", Work::AllocateAndFree, 2),
    ("launch, 5 parameters", Work::Launch, 1),
    ("launch, parameters on the heap", Work::LaunchFromHeap, 1),
];

/// What does the work.
pub(crate) trait Side {
    fn run(&mut self, work: Work) -> Result<(), String>;

    /// Runs what is queued.
    fn settle(&mut self) -> Result<(), String>;
}

/// Nanoseconds of a piece of work, in a batch of it.
fn batch(side: &mut dyn Side, work: Work) -> Result<f64, String> {
    let began = Instant::now();
    for _ in 0..BATCH {
        side.run(work)?;
    }
    let each = began.elapsed().as_nanos() as f64 / BATCH as f64;
    side.settle()?;
    Ok(each)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}

/// Measures all rows, and prints them.
pub(crate) fn print() -> Result<(), Failure> {
    let (mut api, mut below) = (Api::new(CODE)?, Below::new(CODE)?);
    println!("{:<32} {:>8} {:>8} {:>10}", "ns", "api", "driver", "above/call");
    for (name, work, calls) in ROWS {
        let (mut by_api, mut by_driver) = (Vec::new(), Vec::new());
        for _ in 0..BATCHES {
            by_api.push(batch(&mut api, work)?);
            by_driver.push(batch(&mut below, work)?);
        }
        let (api, driver) = (median(by_api), median(by_driver));
        println!("{name:<32} {api:>8.0} {driver:>8.0} {:>10.0}", (api - driver) / calls as f64);
    }
    Ok(())
}

/// Does the work of one row on one side over and over; without a side, what surrounds it.
pub(crate) fn repeat(name: &str, side: &str, times: usize) -> Result<(), Failure> {
    let row = ROWS.iter().find(|(known, ..)| *known == name);
    let (_, work, _) = row.ok_or_else(|| format!("there is no row `{name}`"))?;
    let mut side: Box<dyn Side> = match side {
        "api" => Box::new(Api::new(CODE)?),
        "below" => Box::new(Below::new(CODE)?),
        _ => return Err("the side is `api` or `below`".into()),
    };
    for _ in 0..times {
        side.run(*work)?;
    }
    Ok(())
}
