//! B2: complex Fourier transforms of `f32` through kiln-libs, beside cuFFT called directly.
//!
//! Arrays of 2^10 to 2^26 numbers, and so many of them that at least 2^22 numbers are transformed. Both sides read and write the same memory, and
//! both are graphs of equal calls.

use kiln::DeviceRuntime;
use kiln_libs::fft::Fft;
use kiln_libs::rand::{Sampler, Uniform};

use crate::Failure;
use crate::raw_driver::{self, Raw};
use crate::raw_graph::RawGraph;
use crate::raw_library::cufft::FftPlan;
use crate::result_table::Table;
use crate::workload::launch::runtime;
use crate::workload::library_comparison::{
    TURNS, calls_for, captured, check_equal, compare, recorded, replayed,
};

const POWERS: [u32; 5] = [10, 14, 18, 22, 26];
/// Numbers that are transformed at least, as a power of two.
const LEAST_POWER: u32 = 22;
/// Numbers of the result that are compared.
const COMPARED: usize = 4096;

pub(crate) fn transformed(table: &mut Table, _: usize) -> Result<(), Failure> {
    let (gpu, raw) = (runtime()?, Raw::new()?);
    POWERS.into_iter().try_for_each(|power| measured(table, &gpu, &raw, power))
}

fn measured(table: &mut Table, gpu: &DeviceRuntime, raw: &Raw, power: u32) -> Result<(), Failure> {
    let workload = format!("b2.{power}.device");
    let (n, batch) = (1_usize << power, 1_usize << LEAST_POWER.saturating_sub(power));
    let (input, output) = (gpu.allocate::<[f32; 2]>(n * batch)?, gpu.allocate::<[f32; 2]>(n * batch)?);
    Sampler::new(gpu).draw(3).fill(&input.cast::<f32>()?, Uniform)?;
    let fft = Fft::new(gpu);
    let transform = || fft.transform(&[n]).batch(batch).forward(&input, &output);
    let compared = || Ok::<_, Failure>(output.cast::<f32>()?.view(..COMPARED)?.download()?);
    transform().submit()?.wait()?;
    let by_kiln = compared()?;
    output.fill([0.0; 2])?;
    gpu.synchronize()?;

    let stream = raw.stream()?;
    let plan = FftPlan::new(stream, n, batch)?;
    let queue = || plan.queue(input.address().0, output.address().0);
    queue()?;
    raw_driver::synchronize(stream)?;
    check_equal(&workload, 1e-4, &by_kiln, &compared()?)?;

    let one = RawGraph::capture(raw, stream, 1, queue)?;
    one.run_timed()?;
    let calls = calls_for(one.run_timed()?);
    let direct = RawGraph::capture(raw, stream, calls, queue)?;
    let graph = recorded(gpu, calls, |graph| Ok(transform().record(graph).map(drop)?))?;
    let subjects = vec![("cuFFT", captured(&direct, calls)), ("kiln", replayed(&graph, calls))];
    compare(table, &workload, TURNS, subjects)
}
