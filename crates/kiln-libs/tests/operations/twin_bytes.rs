//! What the simulated device computes in library calls, byte by byte: the same on every machine and for every seed.

use half::{bf16, f16};
use kiln::{DeviceRuntime, GpuRef};
use kiln_libs::blas::{Blas, Diagonal, Matrix, Side, Triangle};
use kiln_libs::dnn::{AttentionTensor, Dnn, NetworkElement, Tensor};
use kiln_libs::sparse::{CsrMatrix, Determinism, Real, Sparse};

use crate::numbers::{TestNumber, made_up};
use crate::sparse_products::sparse_numbers;

/// A call and its result as a number.
type Named = (&'static str, u64);

/// Thirds, whose products and sums are rounded: an order of terms, or a step that is fused, shows in the result.
fn thirds<T: TestNumber>(seed: u64, len: usize) -> Vec<T> {
    made_up::<T>(seed, len).into_iter().map(|value| T::from_number(value.number() / 3.0)).collect()
}

fn digest<T: TestNumber>(result: &GpuRef<T>) -> u64 {
    let numbers = result.download().unwrap();
    assert!(numbers.iter().all(|value| value.number().is_finite()));
    assert!(numbers.iter().any(|value| value.number() != 0.0));
    // A number of a shorter type is exact in `f64`.
    let bytes = numbers.into_iter().flat_map(|value| value.number().to_bits().to_le_bytes());
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

fn product<T: TestNumber, O: TestNumber>(gpu: &DeviceRuntime) -> u64 {
    let (m, n, k) = (17, 13, 300);
    let (a, b) = (gpu.upload(&thirds::<T>(1, m * k)).unwrap(), gpu.upload(&thirds::<T>(2, k * n)).unwrap());
    let c = gpu.upload(&thirds::<O>(3, m * n)).unwrap();
    let (a, b) = (Matrix::new(&a, m, k), Matrix::new(&b, k, n));
    Blas::new(gpu).matmul(a, b, Matrix::new(&c, m, n)).alpha(0.7).beta(0.3).submit().unwrap();
    digest(&c)
}

fn triangular<T: TestNumber + Real>(gpu: &DeviceRuntime) -> u64 {
    let (order, n) = (40, 7);
    let mut a = thirds::<T>(4, order * order);
    (0..order).for_each(|at| a[at * (order + 1)] = T::from_number(3.1));
    let (a, b) = (gpu.upload(&a).unwrap(), gpu.upload(&thirds::<T>(5, order * n)).unwrap());
    let kind = (Triangle::Lower, Diagonal::Stored);
    let (a, x) = (Matrix::new(&a, order, order), Matrix::new(&b, order, n));
    Blas::new(gpu).trsm(Side::Left, 1.3, a, kind, x).submit().unwrap();
    digest(&b)
}

/// A convolution and both of its gradients.
fn convolutions<T: TestNumber + NetworkElement>(gpu: &DeviceRuntime) -> [u64; 3] {
    let dnn = Dnn::new(gpu);
    let [x, w, y] = [[2, 4, 9, 8], [6, 2, 3, 2], [2, 6, 5, 7]];
    let upload = |seed, of: [usize; 4]| gpu.upload(&thirds::<T>(seed, of.iter().product())).unwrap();
    let (images, filters, results) = (upload(6, x), upload(7, w), upload(8, y));
    let call = |which: usize, into: &GpuRef<T>| {
        let tensor = |at: usize, buffer, of| Tensor::new(if at == which { into } else { buffer }, of);
        let (x, w, y) = (tensor(0, &images, x), tensor(1, &filters, w), tensor(2, &results, y));
        let call = match which {
            0 => dnn.convolution_backward_data(y, w, x),
            1 => dnn.convolution_backward_filter(x, y, w),
            _ => dnn.convolution(x, w, y),
        };
        call.padding([1, 0]).stride([2, 1]).groups(2).submit().unwrap();
        digest(into)
    };
    [2, 0, 1].map(|which| call(which, &upload(9, [x, w, y][which])))
}

fn attention<T: TestNumber + NetworkElement>(gpu: &DeviceRuntime) -> u64 {
    let (queries, keys, head) = (5, 70, 64);
    let upload = |seed, len| gpu.upload(&thirds::<T>(seed, len)).unwrap();
    let (q, o) = (upload(10, 4 * queries * head), gpu.allocate::<T>(4 * queries * head).unwrap());
    let (k, v) = (upload(11, 2 * keys * head), upload(12, 2 * keys * head));
    let dnn = Dnn::new(gpu);
    let of = |buffer, heads, positions| AttentionTensor::new(buffer, [1, heads, positions, head]);
    let call = dnn.attention(of(&q, 4, queries), of(&k, 2, keys), of(&v, 2, keys), of(&o, 4, queries));
    call.causal_bottom_right().submit().unwrap();
    digest(&o)
}

/// With a vector, with a matrix, and with a sparse matrix.
fn sparse<T: TestNumber + Real>(gpu: &DeviceRuntime) -> [u64; 3] {
    let sparse = Sparse::new(gpu);
    let (rows, columns, n) = (60, 45, 8);
    let third = |values: Vec<T>| -> Vec<T> {
        values.into_iter().map(|value| T::from_number(value.number() / 3.0)).collect()
    };
    let matrix = |seed, rows, columns| {
        let values = third(sparse_numbers::<T>(seed, rows, columns));
        CsrMatrix::<T>::from_dense(gpu, (rows, columns), &values).unwrap()
    };
    let (a, b) = (matrix(13, rows, columns), matrix(14, columns, rows));
    let upload = |seed, len| gpu.upload(&thirds::<T>(seed, len)).unwrap();
    let (x, y) = (upload(15, columns), upload(16, rows));
    sparse.spmv(Determinism::RunToRun, 1.1, &a, &x, Some(0.9), &y).submit().unwrap();
    let (dense, c) = (upload(17, columns * n), upload(18, rows * n));
    let (dense, result) = (Matrix::new(&dense, columns, n), Matrix::new(&c, rows, n));
    sparse.spmm(Determinism::RunToRun, 1.1, &a, dense, Some(0.9), result).submit().unwrap();
    let d = sparse.product_structure(&a, &b).unwrap();
    sparse.spgemm(1.1, &a, &b, None, &d).submit().unwrap();
    [digest(&y), digest(&c), digest(d.values())]
}

fn all(gpu: &DeviceRuntime) -> Vec<Named> {
    let [convolution, data, filter] = convolutions::<f32>(gpu);
    let [half, half_data, half_filter] = convolutions::<f16>(gpu);
    let [spmv, spmm, spgemm] = sparse::<f64>(gpu);
    let [spmv_f32, spmm_f32, spgemm_f32] = sparse::<f32>(gpu);
    vec![
        ("matmul f16", product::<f16, f16>(gpu)),
        ("matmul f16 to f32", product::<f16, f32>(gpu)),
        ("matmul bf16", product::<bf16, bf16>(gpu)),
        ("matmul bf16 to f32", product::<bf16, f32>(gpu)),
        ("matmul f64", product::<f64, f64>(gpu)),
        ("trsm f32", triangular::<f32>(gpu)),
        ("trsm f64", triangular::<f64>(gpu)),
        ("convolution f32", convolution),
        ("convolution_backward_data f32", data),
        ("convolution_backward_filter f32", filter),
        ("convolution f16", half),
        ("convolution_backward_data f16", half_data),
        ("convolution_backward_filter f16", half_filter),
        ("attention f16", attention::<f16>(gpu)),
        ("attention bf16", attention::<bf16>(gpu)),
        ("spmv f64", spmv),
        ("spmm f64", spmm),
        ("spgemm f64", spgemm),
        ("spmv f32", spmv_f32),
        ("spmm f32", spmm_f32),
        ("spgemm f32", spgemm_f32),
    ]
}

#[test]
fn products_networks_and_sparse_matrices_have_the_same_bytes_everywhere() {
    let first = all(&DeviceRuntime::simulated(1).unwrap());
    assert_eq!(all(&DeviceRuntime::simulated(2).unwrap()), first);
    // Made on x86-64; every other machine must give the same.
    let apart: Vec<String> = first
        .iter()
        .zip(DIGESTS)
        .filter(|((_, found), known)| found != *known)
        .map(|((call, found), _)| format!("{call}: {found:#018x}"))
        .collect();
    assert!(apart.is_empty() && first.len() == DIGESTS.len(), "{}", apart.join("\n"));
}

fn bits(buffer: &GpuRef<f64>) -> Vec<u64> {
    buffer.download().unwrap().into_iter().map(f64::to_bits).collect()
}

/// Processors make NaN with other signs and payloads, and pass on those they are given.
#[test]
fn every_nan_that_is_computed_has_the_same_bits() {
    let gpu = DeviceRuntime::simulated(1).unwrap();
    let blas = Blas::new(&gpu);
    let given = [
        f64::from_bits(0xfff8_0000_0000_0001),
        f64::from_bits(0x7ff0_0000_0000_0001),
        f64::NEG_INFINITY,
        0.0,
    ];
    let zero = gpu.zeros::<f64>(4).unwrap();
    let (x, y) =
        (gpu.upload(&given).unwrap(), gpu.upload(&[f64::INFINITY, 1.0, f64::INFINITY, 2.0]).unwrap());
    blas.axpy(1.0, &x, &y).submit().unwrap();
    let nan = 0x7ff8_0000_0000_0000_u64;
    assert_eq!(bits(&y), [nan, nan, nan, 2.0_f64.to_bits()]);
    let square = |buffer| Matrix::new(buffer, 2, 2);
    blas.matmul(square(&x), square(&zero), square(&y)).submit().unwrap();
    assert_eq!(bits(&y), [nan; 4]);
    let narrow = given.map(|value| value as f32);
    let (x, y) =
        (gpu.upload(&narrow).unwrap(), gpu.upload(&[f32::INFINITY, 1.0, f32::INFINITY, 2.0]).unwrap());
    blas.axpy(1.0, &x, &y).submit().unwrap();
    let found: Vec<u32> = y.download().unwrap().into_iter().map(f32::to_bits).collect();
    assert_eq!(found, [0x7fc0_0000, 0x7fc0_0000, 0x7fc0_0000, 2.0_f32.to_bits()]);
    let halves = [0xfe01_u16, 0x7c01, 0xfc00, 0].map(f16::from_bits);
    let (x, y) = (gpu.upload(&halves).unwrap(), gpu.zeros::<f16>(4).unwrap());
    let nothing = gpu.zeros::<f16>(4).unwrap();
    blas.matmul(Matrix::new(&x, 2, 2), Matrix::new(&nothing, 2, 2), Matrix::new(&y, 2, 2)).submit().unwrap();
    let found: Vec<u16> = y.download().unwrap().into_iter().map(f16::to_bits).collect();
    assert_eq!(found, [0x7e00; 4]);
}

/// In the order of the calls.
const DIGESTS: &[u64; 21] = &[
    0x4bf5_9ad6_c673_6126,
    0xbed8_7390_c2ce_cc77,
    0xd89b_e557_2618_1310,
    0x5eb3_d967_b0c4_5940,
    0x4343_c658_b4e0_70d1,
    0x7262_6b41_2d6d_5488,
    0x069a_4d8c_2999_009f,
    0x70b6_a7dc_60a5_d8ce,
    0xddb1_a0a9_62bc_90ec,
    0x2213_7f45_68e1_ddbd,
    0xe9f9_4b07_8668_73df,
    0x8eed_a0c5_3dac_d50c,
    0x5e25_36fd_9caa_cdee,
    0xd3a8_62b4_ef21_bc05,
    0x79f5_760b_aac5_e586,
    0x1580_ed51_e92c_c96c,
    0x66c0_2863_a70d_09c0,
    0x2040_e22d_8da3_1059,
    0x2a8e_b363_9a91_3b49,
    0xa751_b242_edc7_f472,
    0xca0d_edd9_e3bf_591f,
];
