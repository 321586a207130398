//! What the book says of workspace, of inputs that a call destroys, and of buffers that are longer than what is used.

use half::f16;
use kiln::{DeviceRuntime, GpuRef};
use kiln_libs::Result;
use kiln_libs::blas::{Blas, Matrix, Side};
use kiln_libs::dnn::{AttentionTensor, Dnn, Tensor};
use kiln_libs::fft::Fft;
use kiln_libs::solve::{Solve, Triangle};
use kiln_libs::sparse::Sparse;

use crate::refusals_by_name::{ANY, Calls, KIND};

/// Rows and columns of all matrices.
const N: usize = 8;

#[test]
fn on_a_simulated_device_transforms_and_factorisations_take_as_much_workspace_as_their_data() {
    let gpu = DeviceRuntime::simulated(1).unwrap();
    let (fft, solve) = (Fft::new(&gpu), Solve::new(&gpu));
    let signal = gpu.zeros::<[f32; 2]>(1000).unwrap();
    assert_eq!(fft.transform(&[1000]).forward_in_place(&signal).load().unwrap(), 8000);
    assert_eq!(fft.transform(&[10]).batch(100).inverse_in_place(&signal).load().unwrap(), 8000);
    let (a, tau) = (gpu.zeros::<f64>(N * N).unwrap(), gpu.zeros::<f64>(N).unwrap());
    let pivots = gpu.zeros::<i64>(N).unwrap();
    let square = Matrix::new(&a, N, N);
    let bytes = (N * N * size_of::<f64>()) as u64;
    assert_eq!(solve.cholesky(square, Triangle::Lower).load().unwrap(), bytes);
    assert_eq!(solve.lu(square, &pivots).load().unwrap(), bytes);
    assert_eq!(solve.qr(square.transposed(), &tau).load().unwrap(), bytes);
}

#[test]
fn on_a_simulated_device_other_calls_of_a_library_take_no_workspace() {
    let gpu = DeviceRuntime::simulated(1).unwrap();
    let it = Calls::new(&gpu, N);
    let (blas, sparse): (&Blas, &Sparse) = (&it.blas, &it.sparse);
    let (a, b, c) = (it.matrix(&it.a), it.matrix(&it.b), it.matrix(&it.c));
    let one = |buffer| Tensor::new(buffer, [1, 1, N, N]);
    let [q, k, v, o] = it.halves.each_ref().map(|half| AttentionTensor::new(half, [1, 1, N, 64]));
    let loads: [(&str, Result<u64>); 17] = [
        ("matmul", blas.matmul(a, b, c).load()),
        ("gemv", blas.gemv(1.0, a, &it.x, None, &it.y).load()),
        ("ger", blas.ger(1.0, &it.x, &it.y, a).load()),
        ("dot", blas.dot(&it.x, &it.y, &it.one).load()),
        ("nrm2", blas.nrm2(&it.x, &it.one).load()),
        ("axpy", blas.axpy(1.0, &it.x, &it.y).load()),
        ("iamax", blas.iamax(&it.x, &it.place).load()),
        ("syrk", blas.syrk(1.0, a, None, Triangle::Lower, c).load()),
        ("symm", blas.symm(Side::Left, 1.0, (a, Triangle::Lower), b, None, c).load()),
        ("trmm", blas.trmm(Side::Left, 1.0, a, KIND, b, c).load()),
        ("geam", blas.geam(1.0, a, Some((1.0, b)), c).load()),
        ("trsm", blas.trsm(Side::Left, 1.0, a, KIND, b).load()),
        ("spmv", sparse.spmv(ANY, 1.0, &it.csr[0], &it.x, None, &it.y).load()),
        ("spmm", sparse.spmm(ANY, 1.0, &it.csr[0], b, None, c).load()),
        ("to_dense", sparse.to_dense(&it.csr[0], c).load()),
        ("convolution", it.dnn.convolution(one(&it.a), Tensor::new(&it.one, [1; 4]), one(&it.c)).load()),
        ("attention", it.dnn.attention(q, k, v, o).load()),
    ];
    for (call, bytes) in loads {
        assert_eq!(bytes.unwrap(), 0, "{call}");
    }
}

#[test]
fn on_a_simulated_device_a_real_inverse_of_several_dimensions_leaves_nan_in_its_input() {
    let gpu = DeviceRuntime::simulated(1).unwrap();
    let fft = Fft::new(&gpu);
    for (extents, numbers) in [(&[6, 8][..], 6 * 5), (&[2, 3, 4], 2 * 3 * 3)] {
        let spectrum = gpu.upload(&vec![[1.0_f64, 0.0]; numbers]).unwrap();
        let real = gpu.zeros::<f64>(extents.iter().product()).unwrap();
        fft.transform(extents).real_inverse(&spectrum, &real).submit().unwrap();
        assert!(spectrum.download().unwrap().as_flattened().iter().all(|part| part.is_nan()), "{extents:?}");
        assert!(real.download().unwrap().iter().all(|number| number.is_finite()), "{extents:?}");
    }
    let spectrum = gpu.upload(&[[1.0_f64, 0.0]; 5]).unwrap();
    fft.transform(&[8]).real_inverse(&spectrum, &gpu.zeros(8).unwrap()).submit().unwrap();
    assert_eq!(spectrum.download().unwrap(), [[1.0, 0.0]; 5], "one dimension keeps it");
}

/// A cache that more keys will be written to: what lies behind the first ones is not read.
#[test]
fn the_first_positions_of_a_larger_buffer_can_be_the_keys() {
    const HEADS: usize = 2;
    const HEAD: usize = 8;
    fn tensor(buffer: &GpuRef<f16>, positions: usize) -> AttentionTensor<'_, f16> {
        AttentionTensor::new(buffer, [1, HEADS, positions, HEAD]).positions_first()
    }
    let gpu = DeviceRuntime::simulated(1).unwrap();
    let dnn = Dnn::new(&gpu);
    let numbers = |from: usize, positions: usize| -> Vec<f16> {
        (0..positions * HEADS * HEAD).map(|at| f16::from_f32(((at + from) % 7) as f32 / 8.0)).collect()
    };
    let (keys, values, query) = (numbers(1, 3), numbers(2, 3), gpu.upload(&numbers(3, 1)).unwrap());
    let result = |more: usize| {
        let nan = vec![f16::NAN; more * HEADS * HEAD];
        let [keys, values] = [&keys, &values].map(|of| gpu.upload(&[&of[..], &nan].concat()).unwrap());
        let found = gpu.zeros::<f16>(HEADS * HEAD).unwrap();
        let (k, v) = (tensor(&keys, 3), tensor(&values, 3));
        dnn.attention(tensor(&query, 1), k, v, tensor(&found, 1)).causal_bottom_right().submit().unwrap();
        found.download().unwrap()
    };
    let exact = result(0);
    assert!(
        exact.iter().all(|number| number.is_finite()) && exact.iter().any(|number| number.to_f32() != 0.0)
    );
    assert_eq!(result(5), exact);
}
