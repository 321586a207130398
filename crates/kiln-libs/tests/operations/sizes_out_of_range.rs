//! Sizes that kernels, indices or memory do not reach: refused with what to do, and without a panic.

use half::f16;
use kiln::DeviceRuntime;
use kiln_libs::blas::Blas;
use kiln_libs::dnn::{AttentionTensor, Dnn, Tensor};
use kiln_libs::fft::Fft;
use kiln_libs::prims::Primitives;
use kiln_libs::solve::{Matrix, Solve, Triangle};
use kiln_libs::sparse::{CooMatrix, CscMatrix, CsrMatrix};
use kiln_libs::{LibraryError, Result};

#[track_caller]
fn refused<T: std::fmt::Debug>(answer: Result<T>, reason: &str) {
    let error = answer.unwrap_err();
    let text = error.to_string();
    assert!(matches!(error, LibraryError::Argument { .. }) && text.contains(reason), "{text}");
}

#[test]
fn pooling_windows_that_32_bits_do_not_hold_are_refused() {
    let gpu = DeviceRuntime::simulated(1).unwrap();
    let (dnn, x, y) = (Dnn::new(&gpu), gpu.upload(&[1.0_f32]).unwrap(), gpu.upload(&[7.0_f32]).unwrap());
    let one = |buffer| Tensor::new(buffer, [1, 1, 1, 1]);
    let average = |window: [usize; 2], padding, stride| {
        let call = dnn.average_pool(one(&x), window, one(&y)).count_padding();
        call.padding(padding).stride(stride).submit()
    };
    let side = 65_536;
    refused(average([side, side], [side / 2, side / 2], [side, side]), "fewer than 2^32 places");
    let large = (1 << 32) + 2;
    refused(average([large, 1], [large / 2, 0], [large, 1]), "use sizes below 2^31");
    refused(average([1, 1], [0, 0], [1, 1 << 32]), "use sizes below 2^31");
    let max = dnn.max_pool(one(&x), [large, 1], one(&y)).padding([large / 2, 0]);
    refused(max.submit(), "use sizes below 2^31");
    assert_eq!(y.download().unwrap(), [7.0]);
    // The largest window that is allowed sees one pixel: its average over all places is far below 1.
    average([side, side - 1], [side / 2, side / 2 - 1], [side, side]).unwrap();
    assert_eq!(y.download().unwrap(), [1.0 / (65_536.0 * 65_535.0)]);
}

#[test]
fn bins_that_are_too_narrow_or_too_far_apart_are_refused() {
    let gpu = DeviceRuntime::simulated(1).unwrap();
    let (prims, bins) = (Primitives::new(&gpu), gpu.upload(&[9_u64; 10_000]).unwrap());
    let values = gpu.upload(&[0.0_f64, 0.75e-305]).unwrap();
    refused(
        prims.histogram(&values, 0.0..1e-305, &bins).submit(),
        "10000 bins from 0.0 to 1e-305; use fewer bins or a wider range",
    );
    refused(
        prims.histogram(&values, -1e308..1e308, &bins).submit(),
        "bins from -1e308 to 1e308, whose distance is no finite number; bring the bounds closer together",
    );
    assert_eq!(bins.download().unwrap(), [9; 10_000]);
    let wide = gpu.zeros::<u64>(4).unwrap();
    refused(
        prims.histogram(&wide, 5..5, &bins).submit(),
        "bins from 5 to 5; give finite bounds, the lower one first",
    );
    // A narrow range whose bins are numbers still works: each half has its bin.
    let two = bins.view(..2).unwrap();
    prims.histogram(&values, 0.0..1e-305, &two).submit().unwrap();
    assert_eq!(two.download().unwrap(), [1, 1]);
}

#[test]
fn sparse_matrices_with_too_many_rows_are_refused_before_the_host_allocates() {
    let gpu = DeviceRuntime::simulated(1).unwrap();
    let before = gpu.bytes_outstanding();
    let triplets = [(0_usize, 0_usize, 1.0_f32)];
    for rows in [usize::MAX, 1 << 62, 1 << 46, 1 << 31] {
        let hint = if rows == usize::MAX {
            "use fewer rows and columns: below 2^31, or below 2^63 with indices of type i64"
        } else {
            "use indices of type i64"
        };
        let reason = format!("{rows} rows with indices of type i32; {hint}");
        refused(CsrMatrix::<f32>::from_triplets(&gpu, (rows, 1), &triplets), &reason);
        refused(CsrMatrix::<f32>::from_triplets(&gpu, (1, rows), &triplets), "columns with indices");
        refused(CscMatrix::<f32>::from_triplets(&gpu, (rows, 1), &triplets), &reason);
        refused(CscMatrix::<f32>::from_triplets(&gpu, (1, rows), &triplets), "columns with indices");
        refused(CooMatrix::<f32>::from_triplets(&gpu, (rows, 1), &triplets), &reason);
        refused(CsrMatrix::<f32>::allocate(&gpu, (rows, 1), 1), &reason);
        refused(CscMatrix::<f32>::allocate(&gpu, (1, rows), 1), "columns with indices");
    }
    refused(
        CsrMatrix::<f32, i64>::from_dense(&gpu, (usize::MAX, 0), &[]),
        "use fewer rows and columns: below 2^63",
    );
    // What the index counts to is refused by the memory of the device.
    let rows = |rows| CsrMatrix::<f32, i64>::from_triplets(&gpu, (rows, 1), &triplets).unwrap_err();
    let columns = |columns| CscMatrix::<f32, i64>::from_triplets(&gpu, (1, columns), &triplets).unwrap_err();
    for size in [1 << 62, 1 << 46, 1 << 40] {
        for (error, hint) in [(rows(size), "use fewer rows"), (columns(size), "use fewer columns")] {
            let wanted = format!("`offsets` would have {} elements, which fit no memory; {hint}", size + 1);
            assert!(error.to_string().ends_with(&wanted), "{error}");
        }
    }
    gpu.synchronize().unwrap();
    gpu.reap_pending().unwrap();
    assert_eq!(gpu.bytes_outstanding(), before);
}

#[test]
fn batches_that_reach_past_every_buffer_are_refused() {
    let gpu = DeviceRuntime::simulated(1).unwrap();
    let (solver, a) = (Solve::new(&gpu), gpu.upload(&[4.0_f32; 16]).unwrap());
    let most = u64::MAX as usize;
    let matrices = Matrix::new(&a, most, most).leading(most).batch(most).stride(most);
    let sides = gpu.zeros::<f32>(16).unwrap();
    let pivots = gpu.zeros::<i64>(4).unwrap();
    let vector = Matrix::new(&sides, most, 1).batch(most);
    refused(solver.lu_solve_batched(matrices, &pivots, vector).submit(), "must have more than 2^128");
}

/// A spectrum of rows without numbers is not empty: its length is that of the other sizes.
#[test]
fn transforms_of_sizes_that_fit_no_memory_are_told_in_the_numbers_that_were_given() {
    let gpu = DeviceRuntime::simulated(1).unwrap();
    let (fft, none) = (Fft::new(&gpu), gpu.zeros::<f32>(0).unwrap());
    let spectrum = gpu.zeros::<[f32; 2]>(4).unwrap();
    for (extent, batch) in [(1 << 31, 1 << 31), (1 << 58, 1), (1 << 61, 1), (1 << 62, 1), (usize::MAX, 2)] {
        let call = fft.transform(&[extent, 0]).batch(batch);
        let reason = format!(
            "fft.real_forward: `output` has 2^59 elements or more: {batch} arrays of {extent}x0; use smaller"
        );
        refused(call.real_forward(&none, &spectrum).submit(), &reason);
        let call = fft.transform(&[extent, 0]).batch(batch);
        let reason = reason.replace("real_forward: `output`", "real_forward_in_place: `data`");
        refused(call.real_forward_in_place(&spectrum).submit(), &reason);
    }
    let most = usize::MAX;
    let reason = format!("fft.forward: `input` has 2^59 elements or more: {most} arrays of 4; use smaller");
    refused(fft.transform(&[4]).batch(most).forward(&spectrum, &spectrum).submit(), &reason);
    let real = fft.transform(&[1 << 62]).real_forward_in_place(&spectrum);
    refused(real.submit(), "`data` has 2^59 elements or more: 1 arrays of 4611686018427387904; use smaller");
}

#[test]
fn matrices_and_tensors_that_fit_no_memory_are_told_in_the_numbers_that_were_given() {
    let gpu = DeviceRuntime::simulated(1).unwrap();
    let (most, a) = (usize::MAX, gpu.zeros::<f32>(16).unwrap());
    let c = gpu.zeros::<f32>(16).unwrap();
    let (blas, solve, pivots) = (Blas::new(&gpu), Solve::new(&gpu), gpu.zeros::<i64>(4).unwrap());
    let told = |name: &str, sizes: &str| format!("`{name}` has 2^59 elements or more: a matrix of {sizes}; ");
    let tall = |buffer| Matrix::new(buffer, most, 2);
    refused(blas.geam(1.0, tall(&a), None, tall(&c)).submit(), &told("a", &format!("{most} x 2")));
    let square = Matrix::new(&a, most, most);
    refused(solve.lu(square, &pivots).submit(), &told("a", &format!("{most} x {most}")));
    refused(solve.cholesky(square, Triangle::Lower).submit(), &told("a", &format!("{most} x {most}")));
    let heads = gpu.zeros::<f16>(64).unwrap();
    let tensor = AttentionTensor::new(&heads, [0, most, most, 8]);
    let call = Dnn::new(&gpu).attention(tensor, tensor, tensor, tensor).submit();
    refused(
        call,
        &format!("`q` is 0 x {most} x {most} x 8: what is not 0 multiplies to 2^59 elements or more"),
    );
}
