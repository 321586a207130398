//! Columns, coordinates, conversions, systems and products that cannot be, and what the simulated device finds.

use kiln::DeviceRuntime;
use kiln_libs::sparse::{
    CooMatrix, CscMatrix, CsrMatrix, Determinism, Diagonal, Matrix, SolveFailure, Sparse, Triangle,
};
use kiln_libs::{LibraryError, Result};

use crate::rig::everywhere_and_in_workers;

/// The words of a refusal that is about arguments.
#[track_caller]
fn refused<T>(answer: Result<T>) -> String {
    let error = answer.map(drop).unwrap_err();
    assert!(matches!(error, LibraryError::Argument { .. }), "{error}");
    error.to_string()
}

#[test]
fn columns_and_coordinates_are_checked_before_the_upload() {
    let gpu = DeviceRuntime::simulated(1).unwrap();
    let before = gpu.bytes_outstanding();
    let csc = |offsets: &[i32], indices: &[i32]| {
        refused(CscMatrix::upload(&gpu, (4, 2), offsets, indices, &vec![1.0_f32; indices.len()]))
    };
    let text = csc(&[0, 1], &[0]);
    assert_eq!(
        text,
        "sparse.CscMatrix::upload: 2 offsets for 2 columns; give one more offset than there are columns"
    );
    let text = csc(&[0, 1, 2], &[0, 4]);
    assert_eq!(text, "sparse.CscMatrix::upload: row 4 in a matrix of 4 rows; count rows from 0");
    let text = csc(&[0, 3, 2], &[0, 1]);
    assert!(text.contains("offset 1 is 3, where 0 to 2 is possible"), "{text}");
    // Counted from 1.
    let text = csc(&[1, 2, 3], &[1, 2]);
    assert!(text.contains("offset 0 is 1, where 0 to 0 is possible; let offsets ascend from 0"), "{text}");
    let coo = |rows: &[i64], columns: &[i64], values: &[f64]| {
        refused(CooMatrix::upload(&gpu, (3, 2), rows, columns, values))
    };
    let text = coo(&[0, 2, 1], &[0, 1, 1], &[1.0; 3]);
    assert_eq!(
        text,
        "sparse.CooMatrix::upload: row 1 comes behind row 2; sort the elements by rows, or use `from_triplets`, which does"
    );
    let text = coo(&[0, 3], &[0, 1], &[1.0; 2]);
    assert!(text.contains("row 3 in a matrix of 3 rows; count rows from 0"), "{text}");
    let text = coo(&[0, 1], &[0, 2], &[1.0; 2]);
    assert!(text.contains("column 2 in a matrix of 2 columns"), "{text}");
    let text = coo(&[0, -1], &[0, 1], &[1.0; 2]);
    assert!(text.contains("row -1"), "{text}");
    let text = coo(&[0], &[0, 1], &[1.0; 2]);
    assert!(
        text.contains("1 row indices and 2 column indices; give a row and a column for each value"),
        "{text}"
    );
    let text = coo(&[0, 1], &[0, 1], &[1.0]);
    assert!(text.contains("2 column indices for 1 values"), "{text}");
    let text = refused(CooMatrix::<f32>::allocate(&gpu, (0, 3), 2));
    assert!(text.contains("2 elements in a matrix of 0 rows, 3 columns"), "{text}");
    gpu.synchronize().unwrap();
    gpu.reap_pending().unwrap();
    assert_eq!(gpu.bytes_outstanding(), before);
}

#[test]
fn conversions_that_do_not_fit_are_refused() {
    let gpu = DeviceRuntime::simulated(1).unwrap();
    let sparse = Sparse::new(&gpu);
    let a = CsrMatrix::<f32>::from_dense(&gpu, (2, 3), &[0.0, 2.0, 0.0, 1.0, 0.0, 3.0]).unwrap();
    let other = CscMatrix::<f32>::allocate(&gpu, (3, 2), 3).unwrap();
    let text = refused(sparse.convert(&a, &other).submit());
    assert_eq!(
        text,
        "sparse.convert: 2 x 3 with 3 elements into 3 x 2 with 3; give two matrices of one shape with as many elements"
    );
    let short = CooMatrix::<f32>::allocate(&gpu, (2, 3), 2).unwrap();
    assert!(refused(sparse.convert(&a, &short).submit()).contains("with 3 elements into 2 x 3 with 2"));
    let coo = CooMatrix::<f32>::allocate(&gpu, (2, 3), 3).unwrap();
    let shared =
        CooMatrix::from_buffers((2, 3), coo.row_indices().clone(), a.indices().clone(), coo.values().clone());
    let text = refused(sparse.convert(&a, &shared.unwrap()).submit());
    assert!(text.contains("`from.indices` and `to.indices` share memory"), "{text}");
    let large = 1_usize << 31;
    let numbers = gpu.zeros::<i32>(2).unwrap();
    let values = gpu.zeros::<f32>(1).unwrap();
    let wide = CsrMatrix::from_buffers((1, large), numbers, gpu.zeros(1).unwrap(), values);
    let reason = "2147483648 columns with indices of type i32; use indices of type i64";
    for text in [refused(wide), refused(CooMatrix::<f32>::allocate(&gpu, (1, large), 1))] {
        assert!(text.contains(reason), "{text}");
    }
    let dense = gpu.zeros::<f32>(6).unwrap();
    let offsets = gpu.zeros::<i32>(3).unwrap();
    let text = refused(sparse.count_nonzeros(Matrix::new(&dense, 3, 2), &offsets).submit());
    assert!(text.contains("`offsets` has 3 elements and must have 4"), "{text}");
    let text = refused(sparse.count_nonzeros(Matrix::new(&dense, 2, 4), &offsets).submit());
    assert!(text.contains("`dense` has 6 elements and must have 8"), "{text}");
    let text = refused(sparse.count_nonzeros(Matrix::new(&dense, 2, 3).leading(2), &offsets).submit());
    assert!(text.contains("`dense` has a leading dimension of 2 for rows of 3 elements"), "{text}");
    let text = refused(sparse.count_nonzeros(Matrix::new(&dense, 1, 2).batch(3), &offsets).submit());
    assert!(text.contains("a batch of 3 matrices"), "{text}");
    let text = refused(sparse.copy_nonzeros(Matrix::new(&dense, 2, 3), &coo).submit());
    assert!(
        text.contains("a result in the coordinate format; write compressed rows, and use `convert`"),
        "{text}"
    );
    let text = refused(sparse.copy_nonzeros(Matrix::new(&dense, 3, 2), &a).submit());
    assert!(text.contains("3 x 2 into a matrix of 2 x 3"), "{text}");
    assert_eq!(a.values().download().unwrap(), [2.0, 1.0, 3.0], "nothing was changed");
}

#[test]
fn systems_and_products_that_do_not_fit_are_refused() {
    let gpu = DeviceRuntime::simulated(1).unwrap();
    let sparse = Sparse::new(&gpu);
    let a = CsrMatrix::<f32>::from_dense(&gpu, (2, 2), &[2.0, 0.0, 1.0, 4.0]).unwrap();
    let wide = CsrMatrix::<f32>::from_dense(&gpu, (2, 3), &[1.0; 6]).unwrap();
    let (b, x) = (gpu.upload(&[5.0_f32; 6]).unwrap(), gpu.upload(&[6.0_f32; 6]).unwrap());
    let before = gpu.bytes_outstanding();
    let solve = |a: &CsrMatrix<f32>, b, x| {
        refused(sparse.triangular_solve(Triangle::Lower, Diagonal::Stored, 1.0, a, b, x).submit())
    };
    let text = solve(&wide, Matrix::new(&b, 2, 1), Matrix::new(&x, 2, 1));
    assert_eq!(text, "sparse.triangular_solve: `a` is 2 x 3; give a square matrix");
    let text = solve(&a, Matrix::new(&b, 3, 1), Matrix::new(&x, 3, 1));
    assert!(text.contains("`a` is 2 x 2, `b` is 3 x 1 and `x` is 3 x 1"), "{text}");
    let text = solve(&a, Matrix::new(&b, 2, 2), Matrix::new(&x, 2, 1));
    assert!(text.contains("as many columns each"), "{text}");
    let text = solve(&a, Matrix::new(&b, 2, 1).leading(7), Matrix::new(&x, 2, 1));
    assert!(text.contains("`b` has 6 elements and must have 8"), "{text}");
    let behind = b.view(1..).unwrap();
    let text = solve(&a, Matrix::new(&b, 2, 2), Matrix::new(&behind, 2, 2));
    assert!(text.contains("`b` and `x` share memory"), "{text}");
    let text = solve(&a, Matrix::new(&b, 2, 1), Matrix::new(a.values(), 2, 1));
    assert!(text.contains("`a.values` and `x` share memory"), "{text}");
    let text = refused(sparse.product_structure(&wide, &wide));
    assert_eq!(text, "sparse.product_structure: 2 x 3 times 2 x 3; give m x k and k x n");
    let text = refused(sparse.spgemm(1.0, &a, &wide, None, &a).submit());
    assert_eq!(text, "sparse.spgemm: 2 x 2 times 2 x 3 into 2 x 2; give m x k, k x n and m x n");
    let text = refused(sparse.spgemm(1.0, &a, &a, None, &a).submit());
    assert!(text.contains("`a.values` and `c.values` share memory"), "{text}");
    assert_eq!((b.download().unwrap(), x.download().unwrap()), (vec![5.0; 6], vec![6.0; 6]));
    gpu.synchronize().unwrap();
    gpu.reap_pending().unwrap();
    assert_eq!(gpu.bytes_outstanding(), before, "nothing is held");
}

#[test]
fn a_diagonal_that_has_a_zero_or_is_not_stored_is_told() {
    kiln::testing::check(0..1, |gpu| {
        let sparse = Sparse::new(gpu);
        let solve = |elements: &[(usize, usize, f64)], triangle| {
            let a = CooMatrix::<f64>::from_triplets(gpu, (4, 4), elements).unwrap();
            let b = gpu.upload(&[1.0_f64; 4]).unwrap();
            let x = Matrix::new(&b, 4, 1);
            sparse.triangular_solve(triangle, Diagonal::Stored, 1.0, &a, x, x).submit().unwrap().wait()
        };
        let full = [(0, 0, 1.0), (1, 1, 1.0), (2, 2, 1.0), (3, 3, 1.0)];
        solve(&full, Triangle::Lower).unwrap();
        let mut zero = full;
        zero[2].2 = 0.0;
        let found = solve(&zero, Triangle::Lower).unwrap_err().solve_failure();
        assert_eq!(found, Some(SolveFailure::ZeroDiagonal { row: 2 }));
        // Rows 1 and 3 are missing; the first of them is told, from wherever the solution begins.
        for triangle in [Triangle::Lower, Triangle::Upper] {
            let found = solve(&[full[0], full[2]], triangle).unwrap_err().solve_failure();
            assert_eq!(found, Some(SolveFailure::ZeroDiagonal { row: 1 }));
        }
        let found = solve(&[], Triangle::Upper).unwrap_err().solve_failure();
        assert_eq!(found, Some(SolveFailure::ZeroDiagonal { row: 0 }));
        Ok(())
    })
    .unwrap();
}

/// What the simulated device says of coordinates that the host does not know.
fn finding(rows: [i32; 2], columns: [i32; 2]) -> String {
    let wrong = |gpu: &DeviceRuntime| {
        let buffers = (gpu.upload(&rows)?, gpu.upload(&columns)?, gpu.upload(&[1.0_f32, 2.0])?);
        let a =
            CooMatrix::from_buffers((2, 3), buffers.0, buffers.1, buffers.2).map_err(kiln::Error::other)?;
        let (x, y) = (gpu.upload(&[1.0_f32; 3])?, gpu.allocate::<f32>(2)?);
        let sparse = Sparse::new(gpu);
        let call = sparse.spmv(Determinism::Any, 1.0, &a, &x, None, &y);
        call.submit().map(drop).map_err(kiln::Error::other)?;
        gpu.synchronize()
    };
    kiln::testing::check(0..1, wrong).unwrap_err().to_string()
}

#[test]
fn coordinates_that_are_unsorted_or_out_of_range_are_found_on_the_device() {
    let text = finding([0, 2], [0, 1]);
    let look = "and look at the matrix with `check_indices`";
    let wanted =
        format!("sparse.spmv: `a.row_indices`: element 1 is in row 2 of 2; count rows from 0, {look}");
    assert!(text.contains(&wanted), "{text}");
    let text = finding([1, 0], [0, 1]);
    let wanted = format!(
        "sparse.spmv: `a.row_indices`: element 1 in row 0 comes behind one in row 1; sort the elements with `sort_coordinates`, {look}"
    );
    assert!(text.contains(&wanted), "{text}");
    let text = finding([0, 1], [0, 3]);
    let wanted =
        format!("sparse.spmv: `a.indices`: element 1 is in column 3 of 3; count columns from 0, {look}");
    assert!(text.contains(&wanted), "{text}");
}

#[test]
fn indices_that_are_wrong_are_found_on_every_device() {
    everywhere_and_in_workers("indices_that_are_wrong_are_found_on_every_device", |gpu| {
        let sparse = Sparse::new(gpu);
        let values = || gpu.upload(&[1.0_f64; 4]).unwrap();
        let upload = |numbers: &[i64]| gpu.upload(numbers).unwrap();
        let rows = |offsets: &[i64], columns: &[i64]| {
            let a = CsrMatrix::from_buffers((3, 5), upload(offsets), upload(columns), values()).unwrap();
            sparse.check_indices(&a)
        };
        rows(&[0, 2, 2, 4], &[4, 0, 1, 1]).unwrap();
        let text = refused(rows(&[0, 3, 2, 4], &[4, 0, 1, 9]));
        assert!(text.contains("offset 2 is 2, with 4 elements; let offsets ascend from 0"), "{text}");
        assert!(refused(rows(&[1, 2, 3, 4], &[4, 0, 1, 1])).contains("offset 0 is 1"));
        assert!(refused(rows(&[0, 2, 3, 3], &[4, 0, 1, 1])).contains("offset 3 is 3"));
        assert!(refused(rows(&[0, -1, 3, 4], &[4, 0, 1, 1])).contains("offset 1 is -1"));
        let text = refused(rows(&[0, 2, 2, 4], &[4, 0, 5, -1]));
        assert!(text.contains("element 2 is in column 5 of 5; count columns from 0"), "{text}");
        let columns = |indices: &[i64]| {
            let a =
                CscMatrix::from_buffers((5, 3), upload(&[0, 2, 2, 4]), upload(indices), values()).unwrap();
            sparse.check_indices(&a)
        };
        columns(&[4, 0, 1, 1]).unwrap();
        let text = refused(columns(&[4, 0, 1, 7]));
        assert!(text.contains("element 3 is in row 7 of 5; count rows from 0"), "{text}");
        let coordinates = |rows: &[i64], columns: &[i64]| {
            let a = CooMatrix::from_buffers((3, 5), upload(rows), upload(columns), values()).unwrap();
            sparse.check_indices(&a)
        };
        coordinates(&[0, 0, 2, 2], &[4, 0, 1, 1]).unwrap();
        let text = refused(coordinates(&[0, 2, 1, 2], &[4, 0, 1, 6]));
        assert!(
            text.contains("element 2 in row 1 comes behind a greater one; sort the elements by rows"),
            "{text}"
        );
        assert!(refused(coordinates(&[0, 0, 2, 3], &[4, 0, 1, 1])).contains("element 3 is in row 3 of 3"));
        let empty = CsrMatrix::<f64, i64>::from_triplets(gpu, (3, 5), &[]).unwrap();
        sparse.check_indices(&empty).unwrap();
    });
}

#[test]
fn indices_without_a_meaning_lead_to_no_access_outside_of_the_buffers() {
    // The checker of the simulated device would find one. Assertions would stop the kernels before.
    kiln::testing::check(0..1, |gpu| {
        let sparse = Sparse::new(gpu).index_assertions(false);
        for (offsets, indices) in
            [([0, 9, -3, 4], [0, 77, -5, 2]), ([5, 1, 3, 2], [i32::MAX, i32::MIN, 0, 1])]
        {
            let buffers = (gpu.upload(&offsets)?, gpu.upload(&indices)?, gpu.upload(&[1.0_f32; 4])?);
            let a = CsrMatrix::from_buffers((3, 3), buffers.0, buffers.1, buffers.2).unwrap();
            let (columns, rows) =
                (CscMatrix::allocate(gpu, (3, 3), 4).unwrap(), CooMatrix::allocate(gpu, (3, 3), 4).unwrap());
            sparse.convert(&a, &columns).submit().unwrap();
            sparse.convert(&a, &rows).submit().unwrap();
            let b = gpu.upload(&[1.0_f32; 3])?;
            for triangle in [Triangle::Lower, Triangle::Upper] {
                let x = Matrix::new(&b, 3, 1);
                let _ = sparse.triangular_solve(triangle, Diagonal::Unit, 1.0, &a, x, x).submit().unwrap();
            }
            let c = CsrMatrix::<f32>::from_dense(gpu, (3, 3), &[1.0; 9]).unwrap();
            sparse.spgemm(1.0, &a, &a, Some(1.0), &c).submit().unwrap();
            sparse
                .spgemm(
                    1.0,
                    &c,
                    &a,
                    Some(1.0),
                    &CsrMatrix::<f32>::from_dense(gpu, (3, 3), &[1.0; 9]).unwrap(),
                )
                .submit()
                .unwrap();
        }
        gpu.synchronize()
    })
    .unwrap();
}
