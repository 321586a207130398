//! Sparse matrices in buffers whose indices are wrong: what a simulated device finds where a GPU would give a result without a meaning.

use kiln::DeviceRuntime;
use kiln_libs::Result;
use kiln_libs::sparse::{CooMatrix, CscMatrix, CsrMatrix, Diagonal, Matrix, Sparse, Triangle};

/// A launch that an assertion stopped.
#[track_caller]
fn found(gpu: &DeviceRuntime, queued: Result<()>, assertion: &str) {
    queued.unwrap();
    let text = gpu.synchronize().unwrap_err().to_string();
    assert!(text.contains(assertion), "{text}");
}

fn coordinates(gpu: &DeviceRuntime, rows: [i32; 2], columns: [i32; 2]) -> CooMatrix<f32> {
    let (rows, columns) = (gpu.upload(&rows).unwrap(), gpu.upload(&columns).unwrap());
    CooMatrix::from_buffers((2, 2), rows, columns, gpu.upload(&[3.0_f32, 5.0]).unwrap()).unwrap()
}

fn compressed(gpu: &DeviceRuntime, offsets: [i32; 3], columns: [i32; 2]) -> CsrMatrix<f32> {
    let (offsets, columns) = (gpu.upload(&offsets).unwrap(), gpu.upload(&columns).unwrap());
    CsrMatrix::from_buffers((2, 2), offsets, columns, gpu.upload(&[3.0_f32, 5.0]).unwrap()).unwrap()
}

#[test]
fn conversions_of_what_is_no_matrix_are_found() {
    let convert = |make: &dyn Fn(&DeviceRuntime) -> CooMatrix<f32>, assertion| {
        let gpu = DeviceRuntime::simulated(1).unwrap();
        let (from, to) = (make(&gpu), CsrMatrix::allocate(&gpu, (2, 2), 2).unwrap());
        found(&gpu, Sparse::new(&gpu).convert(&from, &to).submit().map(drop), assertion);
    };
    convert(&|gpu| coordinates(gpu, [1, 0], [0, 1]), "coordinates are sorted: use sort_coordinates first");
    convert(&|gpu| coordinates(gpu, [0, 2], [0, 1]), "inside of the sparse matrix");
    convert(&|gpu| coordinates(gpu, [0, 1], [0, -1]), "inside of the sparse matrix");
    for (offsets, columns, assertion) in [
        ([0, 5, 2], [0, 1], "from 0 to the number"),
        ([0, 1, 2], [0, 9], "inside of the sparse matrix"),
        ([1, 1, 2], [0, 1], "from 0 to the number"),
    ] {
        let gpu = DeviceRuntime::simulated(1).unwrap();
        let from = compressed(&gpu, offsets, columns);
        let to = CscMatrix::allocate(&gpu, (2, 2), 2).unwrap();
        found(&gpu, Sparse::new(&gpu).convert(&from, &to).submit().map(drop), assertion);
    }
}

#[test]
fn solves_and_products_with_what_is_no_matrix_are_found() {
    let gpu = DeviceRuntime::simulated(1).unwrap();
    let (a, b) = (compressed(&gpu, [0, 1, 2], [0, 9]), gpu.upload(&[1.0_f32, 2.0]).unwrap());
    let x = Matrix::new(&b, 2, 1);
    let sparse = Sparse::new(&gpu);
    let queued = sparse.triangular_solve(Triangle::Lower, Diagonal::Unit, 1.0, &a, x, x).submit();
    found(&gpu, queued.map(drop), "inside of the sparse matrix");

    let gpu = DeviceRuntime::simulated(1).unwrap();
    let (a, good) = (compressed(&gpu, [0, 1, 2], [0, 9]), compressed(&gpu, [0, 1, 2], [0, 1]));
    let queued = Sparse::new(&gpu).spgemm(1.0, &a, &good, None, &good.clone()).submit();
    assert!(queued.unwrap_err().to_string().contains("share memory"));
    let c = compressed(&gpu, [0, 1, 2], [0, 1]);
    let queued = Sparse::new(&gpu).spgemm(1.0, &a, &good, None, &c).submit();
    found(&gpu, queued.map(drop), "inside of the sparse matrix");
}

#[test]
fn coordinates_are_sorted_first_and_converted_then() {
    kiln::testing::check(0..2, |gpu| {
        let (sparse, from) = (Sparse::new(gpu), coordinates(gpu, [1, 0], [0, 1]));
        let sorted = CooMatrix::allocate(gpu, (2, 2), 2).unwrap();
        let to: CsrMatrix<f32> = CsrMatrix::allocate(gpu, (2, 2), 2).unwrap();
        sparse.sort_coordinates(&from, &sorted).submit().unwrap();
        sparse.convert(&sorted, &to).submit().unwrap();
        assert_eq!(to.offsets().download().unwrap(), [0, 1, 2]);
        assert_eq!(to.indices().download().unwrap(), [1, 0]);
        assert_eq!(to.values().download().unwrap(), [5.0, 3.0]);
        Ok(())
    })
    .unwrap();
}
