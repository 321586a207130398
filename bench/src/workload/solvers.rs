//! B3: Cholesky factors and singular values through kiln-libs, beside cuSOLVER called directly.
//!
//! A factorisation destroys its matrix, which is copied again before each one, untimed. Time on the device is that of a graph of one factorisation;
//! "done" is the time from the call until the result is there, which is all that can be said of singular values: cuSOLVER computes them partly on the
//! CPU.

use std::time::Instant;

use kiln::{DeviceRuntime, GpuRef};
use kiln_libs::blas::Real;
use kiln_libs::solve::{Matrix, Solve, Triangle};

use crate::Failure;
use crate::raw_driver::{self, Raw};
use crate::raw_graph::RawGraph;
use crate::raw_library::cusolver::{Precision, Solver};
use crate::result_table::Table;
use crate::workload::launch::runtime;
use crate::workload::library_comparison::{NamedSubject, TURNS, captured, compare, recorded, replayed};

const ORDER: usize = 4096;
/// Singular values of the full order are measured if they take at most so long.
const SVD_LIMIT_SECONDS: f64 = 10.0;
const SVD_TURNS: usize = 3;

pub(crate) fn solved(table: &mut Table, _: usize) -> Result<(), Failure> {
    let (gpu, raw) = (runtime()?, Raw::new()?);
    factored::<f32>(table, &gpu, &raw, (Precision::Single, "f32"), |value| value as f32)?;
    factored::<f64>(table, &gpu, &raw, (Precision::Double, "f64"), |value| value)?;
    decomposed::<f32>(table, &gpu, &raw, (Precision::Single, "f32"), |value| value as f32)?;
    decomposed::<f64>(table, &gpu, &raw, (Precision::Double, "f64"), |value| value)
}

/// A matrix of numbers between 0 and 1, with a larger diagonal.
fn numbers<T>(n: usize, diagonal: f64, convert: fn(f64) -> T) -> Vec<T> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as f64 / (1_u64 << 53) as f64
    };
    (0..n * n).map(|at| convert(next() + if at % (n + 1) == 0 { diagonal } else { 0.0 })).collect()
}

/// A matrix that is written over, and what it held.
struct Restored<'a, T: Real> {
    gpu: &'a DeviceRuntime,
    original: GpuRef<T>,
    matrix: GpuRef<T>,
}

impl<'a, T: Real> Restored<'a, T> {
    fn new(gpu: &'a DeviceRuntime, numbers: &[T]) -> Result<Self, Failure> {
        Ok(Self { gpu, original: gpu.upload(numbers)?, matrix: gpu.upload(numbers)? })
    }

    fn restore(&self) -> Result<(), Failure> {
        self.matrix.copy_from(&self.original)?;
        Ok(self.gpu.synchronize()?)
    }

    /// The time of a call until its result is there, in nanoseconds.
    fn time(&self, call: impl FnOnce() -> Result<(), Failure>) -> Result<f64, Failure> {
        self.restore()?;
        let start = Instant::now();
        call()?;
        Ok(start.elapsed().as_nanos() as f64)
    }
}

fn factored<T: Real>(
    table: &mut Table,
    gpu: &DeviceRuntime,
    raw: &Raw,
    (precision, name): (Precision, &str),
    convert: fn(f64) -> T,
) -> Result<(), Failure> {
    let held = Restored::new(gpu, &numbers(ORDER, ORDER as f64, convert))?;
    let (solve, address) = (Solve::new(gpu), held.matrix.address().0);
    let factor = || solve.cholesky(Matrix::new(&held.matrix, ORDER, ORDER).transposed(), Triangle::Lower);
    factor().submit()?.wait()?;
    let by_kiln = held.matrix.view(..ORDER)?.download()?;

    let (stream, event) = (raw.stream()?, raw.event()?);
    let solver = Solver::new(raw, stream, precision, ORDER)?;
    let mut work = solver.cholesky_workspace(raw, address)?;
    held.restore()?;
    solver.cholesky(address, &mut work)?;
    raw_driver::synchronize(stream)?;
    if held.matrix.view(..ORDER)?.download()? != by_kiln {
        table.note(format!("b3.cholesky.{name}: the first columns of both factors differ in some bits"));
    }

    let by_kiln = || held.time(|| Ok(factor().submit()?.ticket().wait()?));
    let direct =
        || held.time(|| solver.cholesky(address, &mut work).and_then(|()| raw_driver::poll(event, stream)));
    let subjects: Vec<NamedSubject<'_>> = vec![("cuSOLVER", Box::new(direct)), ("kiln", Box::new(by_kiln))];
    compare(table, &format!("b3.cholesky.{name}.{ORDER}.done"), TURNS, subjects)?;

    held.restore()?;
    let direct = RawGraph::capture(raw, stream, 1, || solver.cholesky(address, &mut work))?;
    let graph = recorded(gpu, 1, |graph| Ok(factor().record(graph).map(drop)?))?;
    let (mut direct, mut by_kiln) = (captured(&direct, 1), replayed(&graph, 1));
    let restored =
        |measure: &mut dyn FnMut() -> Result<f64, Failure>| held.restore().and_then(|()| measure());
    let subjects: Vec<NamedSubject<'_>> =
        vec![("cuSOLVER", Box::new(|| restored(&mut direct))), ("kiln", Box::new(|| restored(&mut by_kiln)))];
    compare(table, &format!("b3.cholesky.{name}.{ORDER}.device"), TURNS, subjects)
}

/// Half of the order first, which says how long the full one takes.
fn decomposed<T: Real>(
    table: &mut Table,
    gpu: &DeviceRuntime,
    raw: &Raw,
    precision: (Precision, &str),
    convert: fn(f64) -> T,
) -> Result<(), Failure> {
    let half = Decomposition::<T>::new(gpu, raw, precision, ORDER / 2, convert)?;
    half.direct()?;
    let seconds = half.direct()? / 1e9;
    // The work grows with the third power.
    if seconds * 8.0 > SVD_LIMIT_SECONDS {
        table.note(format!(
            "b3.svd.{}: order {} takes {seconds:.1} s, so order {ORDER} would take more than {SVD_LIMIT_SECONDS} s and was left out",
            precision.1,
            ORDER / 2,
        ));
        return half.compare(table);
    }
    drop(half);
    Decomposition::<T>::new(gpu, raw, precision, ORDER, convert)?.compare(table)
}

/// Singular values and vectors of one matrix.
struct Decomposition<'a, T: Real> {
    held: Restored<'a, T>,
    name: &'a str,
    n: usize,
    s: GpuRef<T>,
    u: GpuRef<T>,
    vt: GpuRef<T>,
    solve: Solve,
    solver: Solver,
    work: crate::raw_library::cusolver::Workspace,
    stream: cudarc::driver::sys::CUstream,
}

impl<'a, T: Real> Decomposition<'a, T> {
    fn new(
        gpu: &'a DeviceRuntime,
        raw: &Raw,
        (precision, name): (Precision, &'a str),
        n: usize,
        convert: fn(f64) -> T,
    ) -> Result<Self, Failure> {
        let held = Restored::new(gpu, &numbers(n, 0.0, convert))?;
        let (s, u, vt) = (gpu.allocate(n)?, gpu.allocate(n * n)?, gpu.allocate(n * n)?);
        let solve = Solve::new(gpu);
        // The library is opened by kiln, and once more below.
        by_columns(&solve, n, [&held.matrix, &s, &u, &vt]).load()?;
        let stream = raw.stream()?;
        let solver = Solver::new(raw, stream, precision, n)?;
        let addresses = [&held.matrix, &s, &u, &vt].map(|buffer| buffer.address().0);
        let work = solver.svd_workspace(raw, addresses)?;
        Ok(Self { held, name, n, s, u, vt, solve, solver, work, stream })
    }

    fn buffers(&self) -> [&GpuRef<T>; 4] {
        [&self.held.matrix, &self.s, &self.u, &self.vt]
    }

    fn direct(&self) -> Result<f64, Failure> {
        let addresses = self.buffers().map(|buffer| buffer.address().0);
        self.held.time(|| {
            self.solver.svd(addresses, &self.work)?;
            raw_driver::synchronize(self.stream)
        })
    }

    fn by_kiln(&self) -> Result<f64, Failure> {
        let call = by_columns(&self.solve, self.n, self.buffers());
        self.held.time(|| Ok(call.submit()?.ticket().wait()?))
    }

    fn compare(&self, table: &mut Table) -> Result<(), Failure> {
        let subjects: Vec<NamedSubject<'_>> =
            vec![("cuSOLVER", Box::new(|| self.direct())), ("kiln", Box::new(|| self.by_kiln()))];
        compare(table, &format!("b3.svd.{}.{}.done", self.name, self.n), SVD_TURNS, subjects)
    }
}

fn by_columns<'a, T: Real>(
    solve: &'a Solve,
    n: usize,
    [a, s, u, vt]: [&'a GpuRef<T>; 4],
) -> kiln_libs::solve::SolveCall<'a> {
    let columns = |buffer| Matrix::new(buffer, n, n).transposed();
    solve.svd(columns(a), s, columns(u), Matrix::new(vt, n, n))
}
