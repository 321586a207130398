//! Sizes that no program means, in every place where a call takes a size: refused with the size and what it is the size of, or computed where it has a meaning. Nothing panics, and of a
//! refused call nothing is queued.

mod networks;
mod products;
mod solvers;
mod sparse_matrices;
mod transforms_and_draws;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use kiln::{DeviceRuntime, GpuRef, RuntimeConfig};
use kiln_driver::layer::{CommandKind, Counting, Counts, Layered};
use kiln_libs::Result;
use kiln_libs::blas::Matrix;
use kiln_sim::{DeviceConfig, Machine, MachineConfig, PtxEngine};

use crate::refusals_by_name::Calls;

static SIZES: [usize; 9] =
    [0, 1, (1 << 31) - 1, 1 << 31, 1 << 32, 1 << 48, usize::MAX / 2, usize::MAX - 1, usize::MAX];

/// Rows, columns and elements of what is not absurd.
const N: usize = 4;

/// Sizes that are no mistake where there is a meaning for them.
static NONE: [usize; 0] = [];

struct Row {
    call: &'static str,
    /// What has the size.
    of: &'static str,
    /// The sizes that have a meaning.
    good: &'static [usize],
    submit: fn(&Calls, usize) -> Result<()>,
}

macro_rules! row {
    ($call:literal, $of:literal, $good:expr, |$it:ident, $size:ident| $made:expr) => {
        Row { call: $call, of: $of, good: &$good, submit: |$it, $size| $made.submit().map(drop) }
    };
}

use row;

fn square(buffer: &GpuRef<f32>) -> Matrix<'_, f32> {
    Matrix::new(buffer, N, N)
}

fn columns(buffer: &GpuRef<f32>) -> Matrix<'_, f32> {
    square(buffer).transposed()
}

/// The rows of all tables.
fn rows() -> Vec<Row> {
    [
        products::matmul_rows(),
        products::matrix_rows(),
        products::vector_rows(),
        transforms_and_draws::transform_rows(),
        transforms_and_draws::random_rows(),
        solvers::system_rows(),
        solvers::orthogonal_rows(),
        solvers::batched_rows(),
        networks::convolution_rows(),
        networks::attention_rows(),
        networks::layer_rows(),
        networks::pool_rows(),
        sparse_matrices::sparse_rows(),
        sparse_matrices::constructor_rows(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Commands that do something; memory is ordered by others.
fn work(counts: &Counts) -> u64 {
    let kinds = [CommandKind::Copy, CommandKind::Fill, CommandKind::Launch, CommandKind::Graph];
    kinds.into_iter().map(|kind| counts.submitted(kind)).sum()
}

/// The largest number of a text: a size is told as it was given, or as the elements or bytes that follow from it.
fn largest(text: &str) -> u128 {
    let numbers = text.split(|letter: char| !letter.is_ascii_digit());
    numbers.filter_map(|number| number.parse().ok()).max().unwrap_or(0)
}

#[test]
fn every_size_of_every_call_is_computed_or_refused_with_the_size() {
    let config = MachineConfig::seeded(1).device(DeviceConfig::with_memory(1 << 30));
    let machine = Machine::new(config.engine(Arc::new(PtxEngine::default())));
    let driver = Arc::new(Layered::new(machine.device(0).unwrap(), Counting::default()));
    let gpu = DeviceRuntime::from_driver(driver.clone(), RuntimeConfig::default()).unwrap();
    let calls = Calls::new(&gpu, N);
    gpu.synchronize().unwrap();
    let mut wrong = Vec::new();
    for Row { call, of, good, submit } in rows() {
        for size in SIZES {
            let before = driver.layer().counts();
            let answer = catch_unwind(AssertUnwindSafe(|| submit(&calls, size)));
            let queued = work(&driver.layer().counts().since(&before));
            let mut say = |what: String| wrong.push(format!("{call}, {of} of {size}: {what}"));
            let error = match answer {
                Err(_) => {
                    say("panicked".to_owned());
                    continue;
                }
                Ok(Ok(())) => {
                    if !good.contains(&size) {
                        say("was taken".to_owned());
                    }
                    continue;
                }
                Ok(Err(error)) => error.to_string(),
            };
            if good.contains(&size) {
                say(format!("was refused: {error}"));
            }
            if queued > 0 {
                say(format!("{queued} commands were queued"));
            }
            if !error.starts_with(&format!("{call}: "))
                || !error.contains("; ")
                || largest(&error) < size as u128
            {
                say(error);
            }
        }
    }
    assert!(wrong.is_empty(), "{} are wrong:\n{}", wrong.len(), wrong.join("\n"));
    gpu.synchronize().unwrap();
}
