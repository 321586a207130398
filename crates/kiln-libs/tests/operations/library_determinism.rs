//! Equal calls give equal bits, run after run and on every stream, where that is promised.

use half::f16;
use kiln::{DeviceRuntime, GpuRef, Stream};
use kiln_libs::blas::{Blas, Math, Matrix};
use kiln_libs::dnn::{AttentionTensor, Dnn, Tensor};
use kiln_libs::fft::Fft;
use kiln_libs::prims::{Primitives, ReduceOperator};
use kiln_libs::solve::{Real, Solve, Triangle};
use kiln_libs::sparse::{CsrMatrix, Determinism, Sparse};

use crate::numbers::made_up;
use crate::rig::{everywhere_and_in_workers, is_simulated};

const STREAMS: usize = 4;
/// What results hold before each run.
const OTHER_BITS: u8 = 0xa5;

/// Sizes and runs: small and few on the simulated device.
struct Load {
    runs: usize,
    scale: usize,
}

impl Load {
    fn of(gpu: &DeviceRuntime) -> Self {
        if is_simulated(gpu) { Self { runs: 4, scale: 1 } } else { Self { runs: 100, scale: 64 } }
    }
}

/// Queues a call on all streams at once, again and again, and compares the bits of all results.
fn same_bits(
    gpu: &DeviceRuntime,
    (what, runs, bytes): (&str, usize, usize),
    submit: impl Fn(&GpuRef<u8>, &Stream),
) {
    let streams: Vec<Stream> = (0..STREAMS).map(|_| gpu.stream().unwrap()).collect();
    let results: Vec<GpuRef<u8>> = (0..STREAMS).map(|_| gpu.allocate(bytes).unwrap()).collect();
    let mut first: Option<Vec<u8>> = None;
    for run in 0..runs {
        for (result, stream) in results.iter().zip(&streams) {
            result.fill_bytes(OTHER_BITS).unwrap();
            submit(result, stream);
        }
        for (stream, result) in results.iter().enumerate() {
            let found = result.download().unwrap();
            let first = first.get_or_insert_with(|| found.clone());
            assert!(*first == found, "{what}: other bits in run {run} on stream {stream}");
        }
    }
    let first = first.unwrap();
    assert!(first.iter().any(|byte| *byte != OTHER_BITS && *byte != 0), "{what}: nothing was computed");
}

#[test]
fn products_give_equal_bits_in_all_runs() {
    everywhere_and_in_workers("products_give_equal_bits_in_all_runs", |gpu| {
        let Load { runs, scale } = Load::of(gpu);
        // A long sum for each element, which a library would rather split and add up as the parts come.
        let (m, n, k) = (16, 24, 200 * scale);
        let (a, b) =
            (gpu.upload(&made_up::<f32>(1, m * k)).unwrap(), gpu.upload(&made_up::<f32>(2, k * n)).unwrap());
        let blas = Blas::new(gpu);
        for math in [Math::Ieee, Math::Tf32] {
            same_bits(gpu, ("matmul", runs, m * n * 4), |result, stream| {
                let c = result.cast::<f32>().unwrap();
                let product =
                    blas.matmul(Matrix::new(&a, m, k), Matrix::new(&b, k, n), Matrix::new(&c, m, n));
                product.math(math).determinism(Determinism::RunToRun).on(stream).submit().unwrap();
            });
        }
    });
}

#[test]
fn sparse_products_give_equal_bits_in_all_runs() {
    everywhere_and_in_workers("sparse_products_give_equal_bits_in_all_runs", |gpu| {
        let Load { runs, scale } = Load::of(gpu);
        let (rows, per_row) = (60 * scale, 9);
        let column = |at: usize| (at * 7919 + at / per_row * 31) % rows;
        let values = made_up::<f32>(3, rows * per_row);
        let triplets: Vec<(usize, usize, f32)> =
            values.iter().enumerate().map(|(at, value)| (at / per_row, column(at), *value)).collect();
        let matrix: CsrMatrix<f32> = CsrMatrix::from_triplets(gpu, (rows, rows), &triplets).unwrap();
        let x = gpu.upload(&made_up::<f32>(4, rows)).unwrap();
        let sparse = Sparse::new(gpu);
        same_bits(gpu, ("spmv", runs, rows * 4), |result, stream| {
            let y = result.cast::<f32>().unwrap();
            let product = sparse.spmv(Determinism::RunToRun, 1.0, &matrix, &x, None, &y);
            product.on(stream).submit().unwrap();
        });
    });
}

#[test]
fn transforms_give_equal_bits_in_all_runs() {
    everywhere_and_in_workers("transforms_give_equal_bits_in_all_runs", |gpu| {
        let Load { runs, scale } = Load::of(gpu);
        // A power of two, and a length with a large prime factor, which takes another algorithm.
        for n in [128 * scale, 101 * scale] {
            let numbers = made_up::<f32>(5, 2 * n);
            let signal: Vec<[f32; 2]> = numbers.as_chunks().0.to_vec();
            let (input, fft) = (gpu.upload(&signal).unwrap(), Fft::new(gpu));
            same_bits(gpu, ("fft", runs, n * 8), |result, stream| {
                let output = result.cast::<[f32; 2]>().unwrap();
                fft.transform(&[n]).forward(&input, &output).on(stream).submit().unwrap();
            });
        }
    });
}

#[test]
fn reductions_and_sorts_give_equal_bits_in_all_runs() {
    everywhere_and_in_workers("reductions_and_sorts_give_equal_bits_in_all_runs", |gpu| {
        let Load { runs, scale } = Load::of(gpu);
        let (len, prims) = (5000 * scale, Primitives::new(gpu));
        let numbers = gpu.upload(&made_up::<f32>(6, len)).unwrap();
        same_bits(gpu, ("reduce", runs, 4), |result, stream| {
            let sum = result.cast::<f32>().unwrap();
            prims.reduce(&numbers, ReduceOperator::Sum, &sum).on(stream).submit().unwrap();
        });
        // Many equal keys, so that the order of their values shows which came first.
        let keys: Vec<u32> = (0..len as u32).map(|at| at.wrapping_mul(2_654_435_761) >> 22).collect();
        let (keys, values) =
            (gpu.upload(&keys).unwrap(), gpu.upload(&(0..len as u32).collect::<Vec<_>>()).unwrap());
        let sorted_keys = gpu.allocate::<u32>(len * STREAMS).unwrap();
        let place = std::cell::Cell::new(0);
        same_bits(gpu, ("sort", runs, len * 4), |result, stream| {
            place.set((place.get() + 1) % STREAMS);
            let begin = place.get() * len;
            let (to_keys, to_values) =
                (sorted_keys.view(begin..begin + len).unwrap(), result.cast::<u32>().unwrap());
            prims.sort_by_key(&keys, &values, &to_keys, &to_values).on(stream).submit().unwrap();
        });
    });
}

fn square<T: Real>(buffer: &GpuRef<T>, n: usize) -> Matrix<'_, T> {
    Matrix::new(buffer, n, n)
}

fn batch<T: Real>(buffer: &GpuRef<T>, n: usize, count: usize) -> Matrix<'_, T> {
    square(buffer, n).batch(count)
}

#[test]
fn factors_and_spectra_give_equal_bits_in_all_runs() {
    everywhere_and_in_workers("factors_and_spectra_give_equal_bits_in_all_runs", |gpu| {
        let Load { runs, scale } = Load::of(gpu);
        let n = 12 * scale.min(16);
        let (numbers, solve) = (made_up::<f32>(7, n * n), Solve::new(gpu));
        // Symmetric, with a diagonal that makes it definite.
        let symmetric: Vec<f32> = (0..n * n)
            .map(|at| match (at / n, at % n) {
                (row, column) if row == column => 3.0 * n as f32,
                (row, column) => numbers[row.min(column) * n + row.max(column)],
            })
            .collect();
        let (general, definite) = (gpu.upload(&numbers).unwrap(), gpu.upload(&symmetric).unwrap());
        let bytes = n * n * 4;
        let copied = |result: &GpuRef<u8>, stream: &Stream, from: &GpuRef<f32>| {
            let a = result.cast::<f32>().unwrap();
            a.copy_from_on(stream, from).unwrap();
            a
        };
        same_bits(gpu, ("cholesky", runs, bytes), |result, stream| {
            let a = copied(result, stream, &definite);
            let _ = solve.cholesky(square(&a, n), Triangle::Lower).on(stream).submit().unwrap();
        });
        same_bits(gpu, ("lu", runs, bytes), |result, stream| {
            let (a, pivots) = (copied(result, stream, &general), gpu.allocate::<i64>(n).unwrap());
            let _ = solve.lu(square(&a, n), &pivots).on(stream).submit().unwrap();
        });
        same_bits(gpu, ("qr", runs, bytes), |result, stream| {
            let (a, tau) = (copied(result, stream, &general), gpu.allocate::<f32>(n).unwrap());
            let _ = solve.qr(square(&a, n).transposed(), &tau).on(stream).submit().unwrap();
        });
        // cuSOLVER's last bits depend on where the buffers lie.
        if is_simulated(gpu) {
            same_bits(gpu, ("eigenvectors", runs, bytes), |result, stream| {
                let (a, values) = (copied(result, stream, &definite), gpu.allocate::<f32>(n).unwrap());
                let _ =
                    solve.eigenvectors(square(&a, n), Triangle::Lower, &values).on(stream).submit().unwrap();
            });
        }
        same_bits(gpu, ("svd", runs, bytes), |result, stream| {
            let (a, u) = (gpu.allocate::<f32>(n * n).unwrap(), result.cast::<f32>().unwrap());
            let (s, vt) = (gpu.allocate::<f32>(n).unwrap(), gpu.allocate::<f32>(n * n).unwrap());
            a.copy_from_on(stream, &general).unwrap();
            let call = solve.svd(square(&a, n), &s, square(&u, n).transposed(), square(&vt, n));
            let _ = call.on(stream).submit().unwrap();
        });
    });
}

#[test]
fn batches_of_factors_and_spectra_give_equal_bits_in_all_runs() {
    everywhere_and_in_workers("batches_of_factors_and_spectra_give_equal_bits_in_all_runs", |gpu| {
        let Load { runs, scale } = Load::of(gpu);
        let (n, count) = (7, scale.min(16));
        let (solve, len) = (Solve::new(gpu), n * n * count);
        let general = gpu.upload(&made_up::<f32>(8, len)).unwrap();
        let short = || gpu.allocate::<f32>(n * count).unwrap();
        same_bits(gpu, ("qr_batched", runs, len * 4), |result, stream| {
            let (a, tau) = (result.cast::<f32>().unwrap(), short());
            a.copy_from_on(stream, &general).unwrap();
            let _ = solve.qr_batched(batch(&a, n, count), &tau).on(stream).submit().unwrap();
        });
        same_bits(gpu, ("eigenvectors_batched", runs, len * 4), |result, stream| {
            let (a, values) = (result.cast::<f32>().unwrap(), short());
            a.copy_from_on(stream, &general).unwrap();
            let call = solve.eigenvectors_batched(batch(&a, n, count), Triangle::Lower, &values);
            let _ = call.on(stream).submit().unwrap();
        });
        same_bits(gpu, ("svd_batched", runs, len * 4), |result, stream| {
            let (u, s) = (result.cast::<f32>().unwrap(), short());
            let vt = gpu.allocate::<f32>(len).unwrap();
            let call =
                solve.svd_batched(batch(&general, n, count), &s, batch(&u, n, count), batch(&vt, n, count));
            let _ = call.on(stream).submit().unwrap();
        });
    });
}

#[test]
fn attention_and_convolutions_give_equal_bits_in_all_runs() {
    everywhere_and_in_workers("attention_and_convolutions_give_equal_bits_in_all_runs", |gpu| {
        let Load { runs, scale } = Load::of(gpu);
        let (dnn, order) = (Dnn::new(gpu), Determinism::RunToRun);
        let positions = 24 * scale.min(16);
        let len = 2 * positions * 64;
        let [q, k, v] = [9, 10, 11].map(|seed| gpu.upload(&made_up::<f16>(seed, len)).unwrap());
        same_bits(gpu, ("attention", runs, len * 2), |result, stream| {
            let o = result.cast::<f16>().unwrap();
            let heads = |buffer| AttentionTensor::new(buffer, [1, 2, positions, 64]);
            let call = dnn.attention(heads(&q), heads(&k), heads(&v), heads(&o)).causal();
            call.determinism(order).on(stream).submit().unwrap();
        });
        let side = 6 * scale.min(4);
        let images = 8 * side * side;
        let x = gpu.upload(&made_up::<f32>(12, images)).unwrap();
        let dy = gpu.upload(&made_up::<f32>(13, images)).unwrap();
        // The gradient of the filters is a long sum over all places of the images.
        same_bits(gpu, ("convolution_backward_filter", runs, 8 * 8 * 9 * 4), |result, stream| {
            let dw = result.cast::<f32>().unwrap();
            let image = |buffer| Tensor::new(buffer, [1, 8, side, side]);
            let filters = Tensor::new(&dw, [8, 8, 3, 3]);
            let call = dnn.convolution_backward_filter(image(&x), image(&dy), filters).padding([1, 1]);
            call.determinism(order).on(stream).submit().unwrap();
        });
    });
}

/// On a simulated device every algorithm gives equal bits, so that no result shows whether the order was asked for. The operation does, which a library gets.
#[test]
fn the_order_that_a_call_asks_for_is_part_of_its_operation() {
    let gpu = DeviceRuntime::simulated(1).unwrap();
    let (blas, sparse, dnn) = (Blas::new(&gpu), Sparse::new(&gpu), Dnn::new(&gpu));
    let [a, b, c] = [(); 3].map(|()| gpu.zeros::<f32>(4).unwrap());
    let (x, y) = (gpu.zeros::<f32>(2).unwrap(), gpu.zeros::<f32>(2).unwrap());
    let csr = CsrMatrix::<f32>::from_dense(&gpu, (2, 2), &[1.0; 4]).unwrap();
    let square = |buffer| Matrix::new(buffer, 2, 2);
    let image = |buffer, size| Tensor::new(buffer, [1, 1, size, size]);
    for (order, text) in [(Determinism::Any, "order=any"), (Determinism::RunToRun, "order=run_to_run")] {
        let product = blas.matmul(square(&a), square(&b), square(&c)).determinism(order);
        let vector = sparse.spmv(order, 1.0, &csr, &x, None, &y);
        let convolution = dnn.convolution(image(&a, 2), image(&b, 2), image(&c, 1)).determinism(order);
        for operation in [product.operation(), vector.operation(), convolution.operation()] {
            has_word(operation, text);
        }
    }
}

#[track_caller]
fn has_word(operation: kiln_libs::Result<kiln_libs::operation::Operation>, wanted: &str) {
    let operation = operation.unwrap().to_string();
    assert!(operation.split(' ').any(|word| word == wanted), "{operation} has no {wanted}");
}

/// The same of what else a simulated device computes alike: how products are computed, and how much workspace there may be.
#[test]
fn the_precision_and_the_workspace_that_a_call_asks_for_are_part_of_its_operation() {
    let gpu = DeviceRuntime::simulated(1).unwrap();
    let (blas, dnn) = (Blas::new(&gpu), Dnn::new(&gpu));
    let [a, b, c] = [(); 3].map(|()| gpu.zeros::<f32>(4).unwrap());
    let square = |buffer| Matrix::new(buffer, 2, 2);
    let image = |buffer, size| Tensor::new(buffer, [1, 1, size, size]);
    let product = || blas.matmul(square(&a), square(&b), square(&c));
    let convolution = || dnn.convolution(image(&a, 2), image(&b, 2), image(&c, 1));
    has_word(product().operation(), "math=ieee");
    has_word(convolution().operation(), "math=ieee");
    has_word(product().math(Math::Tf32).operation(), "math=tf32");
    has_word(product().math(Math::Bf16x9).operation(), "math=bf16x9");
    has_word(convolution().math(Math::Tf32).operation(), "math=tf32");
    let halves = [(); 3].map(|()| gpu.zeros::<f16>(4).unwrap());
    let [x, y, z] = halves.each_ref().map(|buffer| Matrix::new(buffer, 2, 2));
    has_word(blas.matmul(x, y, z).math(Math::F16).operation(), "math=f16");
    for bytes in [0, 12_345, 1 << 40] {
        let wanted = format!("workspace={bytes}");
        has_word(product().workspace_limit_bytes(bytes).operation(), &wanted);
        has_word(convolution().workspace_limit_bytes(bytes).operation(), &wanted);
    }
    let heads = [(); 4].map(|()| gpu.zeros::<f16>(64).unwrap());
    let [q, k, v, o] = heads.each_ref().map(|buffer| AttentionTensor::new(buffer, [1, 1, 1, 64]));
    let attention = || dnn.attention(q, k, v, o);
    has_word(attention().determinism(Determinism::RunToRun).operation(), "order=run_to_run");
    has_word(attention().determinism(Determinism::Any).operation(), "order=any");
    has_word(attention().workspace_limit_bytes(77).operation(), "workspace=77");
}
