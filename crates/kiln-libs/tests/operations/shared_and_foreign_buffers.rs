//! Buffers of another runtime, and outputs that share memory: refused before anything is changed.

use kiln::DeviceRuntime;
use kiln_libs::dnn::Dnn;
use kiln_libs::prims::Primitives;
use kiln_libs::sparse::{CooMatrix, CsrMatrix, Diagonal, Matrix, Sparse, Triangle};
use kiln_libs::{LibraryError, Result};

/// Two runtimes that give the same addresses to the same allocations.
fn two() -> (DeviceRuntime, DeviceRuntime) {
    (DeviceRuntime::simulated(1).unwrap(), DeviceRuntime::simulated(1).unwrap())
}

#[track_caller]
fn foreign<T: std::fmt::Debug>(answer: Result<T>) {
    let error = answer.unwrap_err();
    assert!(error.runtime().is_some() && error.to_string().contains("belongs to another runtime"), "{error}");
}

#[track_caller]
fn shared<T: std::fmt::Debug>(answer: Result<T>, operation: &str) {
    let error = answer.unwrap_err();
    let text = error.to_string();
    assert!(matches!(error, LibraryError::Argument { .. }), "{text}");
    assert!(text.starts_with(operation) && text.contains("share memory"), "{text}");
}

#[test]
fn equal_addresses_in_two_runtimes_are_not_the_same_buffer() {
    let (gpu, other) = two();
    let (x, y) = (other.upload(&[1.0_f32, 2.0]).unwrap(), gpu.upload(&[0.0_f32, 9.0]).unwrap());
    assert_eq!(x.address(), y.address());
    foreign(Dnn::new(&gpu).softmax(&x, 2, &y).submit());
    assert_eq!(y.download().unwrap(), [0.0, 9.0]);

    let (gpu, other) = two();
    let (one, own) = (other.upload(&[1_u32]).unwrap(), gpu.upload(&[7_u32]).unwrap());
    assert_eq!(one.address(), own.address());
    foreign(Primitives::new(&gpu).sort(&one, &own).submit());
    foreign(Primitives::new(&gpu).sort_by_key(&own, &one, &own, &gpu.zeros(1).unwrap()).submit());
    assert_eq!(own.download().unwrap(), [7]);
    let (three, own) = (other.upload(&[3_u32, 1, 2]).unwrap(), gpu.upload(&[7_u32, 8, 9]).unwrap());
    foreign(Primitives::new(&gpu).sort(&three, &own).bits(0..8).submit());
    assert_eq!(own.download().unwrap(), [7, 8, 9]);

    let (gpu, other) = two();
    let (b, x) = (other.upload(&[2.0_f64, 9.0]).unwrap(), gpu.upload(&[100.0_f64, 200.0]).unwrap());
    assert_eq!(b.address(), x.address());
    let a: CsrMatrix<f64> = CsrMatrix::from_dense(&gpu, (2, 2), &[2.0, 0.0, 1.0, 4.0]).unwrap();
    let (sparse, right) = (Sparse::new(&gpu), Matrix::new(&b, 2, 1));
    foreign(
        sparse
            .triangular_solve(Triangle::Lower, Diagonal::Stored, 1.0, &a, right, Matrix::new(&x, 2, 1))
            .submit(),
    );
    assert_eq!(x.download().unwrap(), [100.0, 200.0]);
}

#[test]
fn a_sparse_matrix_of_another_runtime_is_not_converted() {
    let (gpu, other) = two();
    let from: CsrMatrix<f64> = CsrMatrix::from_dense(&other, (2, 2), &[1.0, 2.0, 3.0, 4.0]).unwrap();
    let to: CsrMatrix<f64> = CsrMatrix::from_dense(&gpu, (2, 2), &[5.0, 6.0, 7.0, 8.0]).unwrap();
    assert_eq!(from.values().address(), to.values().address());
    foreign(Sparse::new(&gpu).convert(&from, &to).submit());
    assert_eq!(to.values().download().unwrap(), [5.0, 6.0, 7.0, 8.0]);
}

#[test]
fn a_refused_call_of_several_steps_has_changed_nothing() {
    let (gpu, other) = two();
    let (prims, x) = (Primitives::new(&gpu), other.upload(&[0.5_f32; 16]).unwrap());
    let counts = gpu.upload(&[9_u64; 4]).unwrap();
    foreign(prims.histogram(&x, 0.0..1.0, &counts).submit());
    let mut graph = gpu.graph();
    foreign(prims.histogram(&x, 0.0..1.0, &counts).record(&mut graph));
    assert_eq!(graph.len(), 0);
    assert_eq!(counts.download().unwrap(), [9; 4]);

    let own = || gpu.upload(&[1.0_f32; 16]).unwrap();
    let (input, dy, dx) = (own(), own(), gpu.upload(&[3.0_f32; 16]).unwrap());
    let (scales, gradient) = (gpu.upload(&[1.0_f32; 4]).unwrap(), other.zeros::<f32>(4).unwrap());
    let call = || {
        let dnn = Dnn::new(&gpu);
        dnn.rms_norm_backward(&input, &dy, &scales, 4, &dx).weight_gradient(&gradient).submit()
    };
    foreign(call());
    assert_eq!(dx.download().unwrap(), [3.0; 16]);
}

#[test]
fn outputs_that_share_memory_are_refused() {
    let gpu = DeviceRuntime::simulated(1).unwrap();
    let sparse = Sparse::new(&gpu);
    let rows: CooMatrix<f32> = CooMatrix::from_triplets(&gpu, (2, 2), &[(0, 1, 1.0), (1, 0, 2.0)]).unwrap();
    let (index, values) = (gpu.upload(&[5_i32, 6]).unwrap(), gpu.upload(&[5.0_f32, 6.0]).unwrap());
    let twice = CooMatrix::from_buffers((2, 2), index.clone(), index.clone(), values.clone()).unwrap();
    shared(sparse.sort_coordinates(&rows, &twice).submit(), "sparse.sort_coordinates");

    let (offsets, as_values) = (gpu.upload(&[7_i32; 3]).unwrap(), index.cast::<f32>().unwrap());
    let cast = CsrMatrix::from_buffers((2, 2), offsets, index.clone(), as_values).unwrap();
    let from: CsrMatrix<f32> = CsrMatrix::from_dense(&gpu, (2, 2), &[0.0, 1.0, 2.0, 0.0]).unwrap();
    shared(sparse.convert(&from, &cast).submit(), "sparse.convert");
    shared(sparse.spgemm(1.0, &from, &from, None, &cast).submit(), "sparse.spgemm");
    let dense = gpu.upload(&[0.0_f32, 1.0, 2.0, 0.0]).unwrap();
    shared(sparse.copy_nonzeros(Matrix::new(&dense, 2, 2), &cast).submit(), "sparse.copy_nonzeros");
    assert_eq!(index.download().unwrap(), [5, 6]);

    let (input, output) = (gpu.zeros::<u32>(16).unwrap(), gpu.zeros::<u32>(16).unwrap());
    let flags = gpu.upload(&[1_u8; 16]).unwrap();
    let count = flags.view(8..16).unwrap().cast::<u64>().unwrap();
    let prims = Primitives::new(&gpu);
    shared(prims.select_flagged(&input, &flags, &output, &count).submit(), "prims.select_flagged");
    assert_eq!(flags.download().unwrap(), [1; 16]);
}
