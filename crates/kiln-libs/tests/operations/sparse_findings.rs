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

const LOOK: &str = "look at the matrix with check_indices";

/// A conversion of what is no matrix: what is told begins with the call and the argument, and goes on with the element and what to do.
#[track_caller]
fn converted(gpu: &DeviceRuntime, queued: Result<()>, what: &str, next: &str) {
    found(gpu, queued, &format!("assertion `sparse.convert: `from` has {what}; {next}` failed"));
}

#[test]
fn conversions_of_what_is_no_matrix_are_found() {
    let from_0 = format!("count from 0; {LOOK}");
    let ascend = format!("let offsets ascend from 0 to the number of elements; {LOOK}");
    for (rows, columns, what, next) in [
        ([1, 0], [0, 1], "element 1 in row 0 behind one in row 1", "use sort_coordinates first"),
        ([0, 2], [0, 1], "element 1 in row 2 of 2", &from_0),
        ([0, 1], [0, -1], "element 1 in column -1 of 2", &from_0),
        ([i32::MIN, 1], [0, 1], "element 0 in row -2147483648 of 2", &from_0),
    ] {
        let gpu = DeviceRuntime::simulated(1).unwrap();
        let (from, to) = (coordinates(&gpu, rows, columns), CsrMatrix::allocate(&gpu, (2, 2), 2).unwrap());
        converted(&gpu, Sparse::new(&gpu).convert(&from, &to).submit().map(drop), what, next);
    }
    for (offsets, columns, what, next) in [
        ([0, 5, 2], [0, 1], "the offset 5 at 1, with 2 elements", &ascend),
        ([0, 1, 2], [0, 9], "element 1 in column 9 of 2", &from_0),
        ([1, 1, 2], [0, 1], "the offset 1 at 0, with 2 elements", &ascend),
        ([0, 1, 1], [0, 1], "the offset 1 at 2, with 2 elements", &ascend),
    ] {
        let gpu = DeviceRuntime::simulated(1).unwrap();
        let from = compressed(&gpu, offsets, columns);
        let to = CscMatrix::allocate(&gpu, (2, 2), 2).unwrap();
        converted(&gpu, Sparse::new(&gpu).convert(&from, &to).submit().map(drop), what, next);
    }
    // Of a matrix whose columns are compressed the rows are listed, and rows of the transpose are columns.
    let gpu = DeviceRuntime::simulated(1).unwrap();
    let (offsets, rows) = (gpu.upload(&[0, 1, 2]).unwrap(), gpu.upload(&[0, 9]).unwrap());
    let from = CscMatrix::from_buffers((2, 2), offsets, rows, gpu.upload(&[3.0_f32, 5.0]).unwrap()).unwrap();
    let to = CsrMatrix::allocate(&gpu, (2, 2), 2).unwrap();
    let queued = Sparse::new(&gpu).convert(&from, &to).submit().map(drop);
    converted(&gpu, queued, "element 1 in row 9 of 2", &from_0);
}

#[test]
fn every_call_that_asserts_names_itself_and_the_argument() {
    let wrong = |gpu: &DeviceRuntime| compressed(gpu, [0, 1, 2], [0, 9]);
    let good = |gpu: &DeviceRuntime| compressed(gpu, [0, 1, 2], [0, 1]);
    let element = format!("has element 1 in column 9 of 2; count from 0; {LOOK}");
    let queued = |call: &dyn Fn(&DeviceRuntime, &Sparse) -> Result<()>, wanted: &str| {
        let gpu = DeviceRuntime::simulated(1).unwrap();
        let sparse = Sparse::new(&gpu);
        found(&gpu, call(&gpu, &sparse), &format!("{wanted} {element}"));
    };
    let product = |at: usize| {
        move |gpu: &DeviceRuntime, sparse: &Sparse| {
            let [a, b, c] = std::array::from_fn(|place| if place == at { wrong(gpu) } else { good(gpu) });
            sparse.spgemm(1.0, &a, &b, None, &c).submit().map(drop)
        }
    };
    queued(&product(0), "sparse.spgemm: `a`");
    queued(&product(1), "sparse.spgemm: `b`");
    queued(&product(2), "sparse.spgemm: `c`");
    for triangle in [Triangle::Lower, Triangle::Upper] {
        let solve = |gpu: &DeviceRuntime, sparse: &Sparse| {
            let (a, b) = (wrong(gpu), gpu.upload(&[1.0_f32, 2.0])?);
            let x = Matrix::new(&b, 2, 1);
            sparse.triangular_solve(triangle, Diagonal::Unit, 1.0, &a, x, x).submit().map(drop)
        };
        queued(&solve, "sparse.triangular_solve: `a`");
    }
    let sort = |gpu: &DeviceRuntime, sparse: &Sparse| {
        let (from, to) = (coordinates(gpu, [1, 0], [0, 9]), CooMatrix::allocate(gpu, (2, 2), 2)?);
        sparse.sort_coordinates(&from, &to).submit().map(drop)
    };
    queued(&sort, "sparse.sort_coordinates: `from`");
    for (at, name) in ["a", "b"].into_iter().enumerate() {
        let gpu = DeviceRuntime::simulated(1).unwrap();
        let [a, b] = std::array::from_fn(|place| if place == at { wrong(&gpu) } else { good(&gpu) });
        let text = Sparse::new(&gpu).product_structure(&a, &b).unwrap_err().to_string();
        let wanted = format!("sparse.product_structure: `{name}` {element}");
        assert!(text.contains(&wanted), "{text}");
    }
}

#[test]
fn a_transposed_solve_and_a_product_in_place_are_told_as_such() {
    let gpu = DeviceRuntime::simulated(1).unwrap();
    let (a, b) = (compressed(&gpu, [0, 1, 2], [0, 9]), gpu.upload(&[1.0_f32, 2.0]).unwrap());
    let x = Matrix::new(&b, 2, 1);
    let sparse = Sparse::new(&gpu);
    let queued = sparse.triangular_solve(Triangle::Lower, Diagonal::Unit, 1.0, a.transposed(), x, x).submit();
    // The columns that are stored are rows of the transpose.
    found(&gpu, queued.map(drop), "sparse.triangular_solve: `a` has element 1 in row 9 of 2; count from 0");

    let gpu = DeviceRuntime::simulated(1).unwrap();
    let (a, good) = (compressed(&gpu, [0, 1, 2], [0, 9]), compressed(&gpu, [0, 1, 2], [0, 1]));
    let queued = Sparse::new(&gpu).spgemm(1.0, &a, &good, None, &good.clone()).submit();
    assert!(queued.unwrap_err().to_string().contains("share memory"));
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
