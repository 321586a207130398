//! Buffers of library calls that a dying worker leaves unfinished: what the calls write is lost or healed, and what they read is kept.

use kiln::recovery::{DeviceSpec, Process, Replay};
use kiln::{DeviceRuntime, GpuRef};
use kiln_libs::blas::{Blas, Matrix};
use kiln_libs::dnn::Dnn;
use kiln_libs::fft::Fft;
use kiln_libs::prims::{Primitives, ScanOperator};
use kiln_libs::rand::{Sampler, Uniform};
use kiln_libs::sparse::{CsrMatrix, Determinism, Sparse};

use crate::library_workers::{hold, kill};
use crate::rig::{in_worker, process};

const N: usize = 16;

struct Calls {
    blas: Blas,
    fft: Fft,
    dnn: Dnn,
    prims: Primitives,
    sampler: Sampler,
    sparse: Sparse,
    matrix: CsrMatrix<f32>,
    read: GpuRef<f32>,
}

impl Calls {
    fn new(gpu: &DeviceRuntime) -> Self {
        let (blas, fft, dnn) = (Blas::new(gpu), Fft::new(gpu), Dnn::new(gpu));
        let (prims, sampler, sparse) = (Primitives::new(gpu), Sampler::new(gpu), Sparse::new(gpu));
        let matrix = CsrMatrix::from_dense(gpu, (N, N), &[0.5; N * N]).unwrap();
        let read = gpu.upload(&[3.0; N]).unwrap();
        Self { blas, fft, dnn, prims, sampler, sparse, matrix, read }
    }

    /// Queues a call of each kind that overwrites its own buffer.
    fn submit(&self, stream: &kiln::Stream, written: &[GpuRef<f32>]) -> kiln_libs::Result<()> {
        let [product, sums, draw, spmv, rows, spectrum] = written else { panic!("six calls") };
        let square = |buffer| Matrix::new(buffer, 4, 4);
        self.blas.matmul(square(&self.read), square(&self.read), square(product)).on(stream).submit()?;
        self.prims.scan_inclusive(&self.read, ScanOperator::Sum, sums).on(stream).submit()?;
        self.sampler.draw(1).on(stream).fill(draw, Uniform)?;
        self.sparse
            .spmv(Determinism::RunToRun, 1.0, &self.matrix, &self.read, None, spmv)
            .on(stream)
            .submit()?;
        self.dnn.softmax(&self.read, 4, rows).on(stream).submit()?;
        let spectrum = spectrum.cast::<[f32; 2]>()?;
        self.fft.transform(&[N / 2]).forward_in_place(&spectrum).on(stream).submit()?;
        Ok(())
    }
}

/// What each call makes of it.
fn expected() -> [Vec<f32>; 6] {
    let gpu = DeviceRuntime::simulated(1).unwrap();
    let calls = Calls::new(&gpu);
    let written: Vec<_> = (0..6).map(|_| gpu.upload(&[1.0_f32; N]).unwrap()).collect();
    calls.submit(gpu.main_stream(), &written).unwrap();
    let values: Vec<_> = written.iter().map(|buffer| buffer.download().unwrap()).collect();
    // Of three of them by hand.
    assert_eq!((values[0][0], values[1][N - 1], values[3][0]), (36.0, 48.0, 24.0));
    values.try_into().unwrap()
}

#[test]
fn results_of_calls_that_were_lost_are_healed_and_what_they_read_is_kept() {
    let gpu = in_worker(&DeviceSpec::simulated(12), Process { replay: Replay::Never, ..process() });
    let calls = Calls::new(&gpu);
    let written: Vec<_> = (0..6).map(|_| gpu.upload(&[1.0_f32; N]).unwrap()).collect();
    // The first time loads everything.
    calls.submit(gpu.main_stream(), &written).unwrap();
    gpu.synchronize().unwrap();
    let healed = [7.0_f32; N];
    written.iter().for_each(|buffer| buffer.heal_with(&healed).unwrap());
    let stream = hold(&gpu);
    calls.submit(&stream, &written).unwrap();
    kill(&gpu);
    for (at, buffer) in written.iter().enumerate() {
        assert_eq!(buffer.download().unwrap(), healed, "call {at}");
    }
    assert_eq!(calls.read.download().unwrap(), [3.0; N]);
    // A healed buffer is one like others: the same calls overwrite it.
    written.iter().for_each(|buffer| buffer.upload(&[1.0; N]).map(drop).unwrap());
    calls.submit(gpu.main_stream(), &written).unwrap();
    for ((at, buffer), wanted) in written.iter().enumerate().zip(expected()) {
        assert_eq!(buffer.download().unwrap(), wanted, "call {at}");
    }
}

#[test]
fn results_of_calls_that_were_lost_without_content_to_heal_are_refused_until_they_are_overwritten() {
    let gpu = in_worker(&DeviceSpec::simulated(13), Process { replay: Replay::Never, ..process() });
    let calls = Calls::new(&gpu);
    let written: Vec<_> = (0..6).map(|_| gpu.upload(&[1.0_f32; N]).unwrap()).collect();
    calls.submit(gpu.main_stream(), &written).unwrap();
    let stream = hold(&gpu);
    calls.submit(&stream, &written).unwrap();
    kill(&gpu);
    assert_eq!(calls.read.download().unwrap(), [3.0; N]);
    for (at, buffer) in written.iter().enumerate() {
        let error = buffer.download().unwrap_err();
        assert!(error.to_string().contains("lost"), "call {at}: {error}");
        // A library call reads no lost buffer, and says which.
        let error = calls.blas.scal(2.0, buffer).submit().unwrap_err().to_string();
        assert!(error.starts_with("blas.scal: `x`") && error.contains("heal_with"), "call {at}: {error}");
        buffer.upload(&[1.0; N]).unwrap();
        calls.blas.scal(2.0, buffer).submit().unwrap();
        assert_eq!(buffer.download().unwrap(), [2.0; N], "call {at}");
    }
}

#[test]
fn calls_that_are_done_again_leave_nothing_to_heal() {
    let gpu = in_worker(&DeviceSpec::simulated(14), Process { replay: Replay::NotStarted, ..process() });
    let calls = Calls::new(&gpu);
    let written: Vec<_> = (0..6).map(|_| gpu.upload(&[1.0_f32; N]).unwrap()).collect();
    calls.submit(gpu.main_stream(), &written).unwrap();
    gpu.synchronize().unwrap();
    for buffer in &written {
        buffer.upload(&[1.0; N]).unwrap();
        buffer.heal_with(&[7.0; N]).unwrap();
    }
    let stream = hold(&gpu);
    calls.submit(&stream, &written).unwrap();
    kill(&gpu);
    for ((at, buffer), wanted) in written.iter().enumerate().zip(expected()) {
        assert_eq!(buffer.download().unwrap(), wanted, "call {at}");
    }
}
