//! CubeCL on the workloads of `kiln-bench`, one JSON object a line, for its `--peers`.
//!
//! CubeCL hands its calls to a separate thread and reports most mistakes by panicking there or here. Each workload is run by itself,
//! and what goes wrong in one is printed as a line that begins with `absent:`; the rows of the others stay. A host without a GPU is
//! such a line and not a failure.

mod kernels;
mod launch;
mod memory;
#[path = "../../peers/row.rs"]
mod row;
mod transfer;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, PoisonError};

use cubecl::Runtime;
use cubecl::client::ComputeClient;
use cubecl::cuda::{CudaDevice, CudaRuntime};

type Client = ComputeClient<CudaRuntime>;
type Failure = Box<dyn std::error::Error>;

/// The name in rows that are missing.
const PEER: &str = "CubeCL";

/// What the first panic since the last look said, of any thread.
static PANIC: Mutex<Option<String>> = Mutex::new(None);

const WORKLOADS: &[(&str, fn(&Client) -> Result<(), Failure>)] = &[
    ("l1", launch::four_buffers),
    ("l2", launch::two_streams),
    ("l3", launch::many_buffers),
    ("m1", memory::pairs),
    ("t1", transfer::pageable),
    ("t2", transfer::pinned_block),
];

fn main() {
    std::panic::set_hook(Box::new(|info| {
        let text = info.payload_as_str().unwrap_or("a panic without words").to_owned();
        PANIC.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(text);
    }));
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    let client = match guarded(|| Ok(CudaRuntime::client(&CudaDevice::default()))) {
        Ok(client) => client,
        Err(failure) => return row::absent(PEER, &failure),
    };
    for (name, workload) in WORKLOADS {
        if !wanted.is_empty() && !wanted.iter().any(|each| each == name) {
            continue;
        }
        if let Err(failure) = guarded(|| workload(&client)) {
            row::absent(PEER, &format!("{name}: {failure}"));
        }
    }
    if wanted.is_empty() {
        row::absent(PEER, "l5: there is no tracked task without a kernel");
    }
}

/// Runs something that may panic, here or in a thread it waits for; the answer is in words, on one line.
fn guarded<T>(work: impl FnOnce() -> Result<T, Failure>) -> Result<T, String> {
    PANIC.lock().unwrap_or_else(PoisonError::into_inner).take();
    let outcome = catch_unwind(AssertUnwindSafe(work));
    let panic = PANIC.lock().unwrap_or_else(PoisonError::into_inner).take();
    match (outcome, panic) {
        (Ok(Ok(value)), None) => Ok(value),
        (Ok(Err(failure)), None) => Err(one_line(&failure.to_string())),
        (_, Some(text)) => Err(one_line(&text)),
        (Err(_), None) => Err("it ended without a reason".to_owned()),
    }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
