//! Sparse matrices that cannot be, and what the simulated device finds in those that the host does not know.

use kiln::DeviceRuntime;
use kiln_libs::sparse::{CsrMatrix, Determinism, Matrix, Sparse};
use kiln_libs::{LibraryError, Result};

/// The words of a refusal that is about arguments.
#[track_caller]
fn refused<T: std::fmt::Debug>(answer: Result<T>) -> String {
    let error = answer.unwrap_err();
    assert!(matches!(error, LibraryError::Argument { .. }), "{error}");
    error.to_string()
}

#[test]
fn indices_that_are_no_places_are_refused_before_the_upload() {
    let gpu = DeviceRuntime::simulated(1).unwrap();
    let before = gpu.bytes_outstanding();
    let upload = |offsets: &[i32], indices: &[i32]| {
        refused(CsrMatrix::upload(&gpu, (3, 4), offsets, indices, &vec![1.0_f32; indices.len()]))
    };
    let text = upload(&[0, 1, 2], &[0, 1]);
    assert_eq!(
        text,
        "sparse.CsrMatrix::upload: 3 offsets for 3 rows; give one more offset than there are rows"
    );
    let text = upload(&[1, 1, 2, 2], &[0, 1]);
    assert!(text.contains("offset 0 is 1, where 0 to 0 is possible"), "{text}");
    let text = upload(&[0, 2, 1, 2], &[0, 1]);
    assert!(text.contains("offset 2 is 1, where 2 to 2 is possible; let offsets ascend"), "{text}");
    let text = upload(&[0, 1, 1, 1], &[0, 1]);
    assert!(text.contains("offset 3 is 1, where 2 to 2"), "{text}");
    let text = upload(&[0, -1, 2, 2], &[0, 1]);
    assert!(text.contains("offset 1 is -1"), "{text}");
    let text = upload(&[0, 1, 2, 3], &[0, 4, 1]);
    assert!(text.contains("column 4 in a matrix of 4 columns; count columns from 0"), "{text}");
    let text = upload(&[0, 1, 2, 3], &[0, -2, 1]);
    assert!(text.contains("column -2"), "{text}");
    let text = refused(CsrMatrix::upload(&gpu, (1, 4), &[0_i64, 2], &[0, 1], &[1.0_f64]));
    assert!(text.contains("2 column indices for 1 values"), "{text}");
    let text = refused(CsrMatrix::<f32>::from_dense(&gpu, (2, 2), &[1.0; 3]));
    assert!(text.contains("3 elements for a matrix of 2 x 2"), "{text}");
    let text = refused(CsrMatrix::<f32>::from_triplets(&gpu, (2, 2), &[(0, 0, 1.0), (2, 1, 1.0)]));
    assert!(text.contains("an element at row 2, column 1 of a matrix of 2 x 2"), "{text}");
    gpu.synchronize().unwrap();
    gpu.reap_pending().unwrap();
    assert_eq!(gpu.bytes_outstanding(), before);
}

#[test]
fn sparse_calls_that_do_not_fit_are_refused() {
    let gpu = DeviceRuntime::simulated(1).unwrap();
    let sparse = Sparse::new(&gpu);
    let a: CsrMatrix<f32> = CsrMatrix::from_dense(&gpu, (2, 3), &[0.0, 2.0, 0.0, 1.0, 0.0, 3.0]).unwrap();
    let (x, y) = (gpu.zeros::<f32>(3).unwrap(), gpu.upload(&[5.0_f32; 2]).unwrap());
    let (any, fixed) = (Determinism::Any, Determinism::RunToRun);
    let text = refused(sparse.spmv(any, 1.0, &a, &y, None, &x).submit());
    assert!(text.contains("a matrix of 2 x 3 with x of 2 and y of 3 elements"), "{text}");
    let text = refused(sparse.spmv(fixed, 1.0, a.transposed(), &y, None, &x).submit());
    assert!(text.contains("equal bits in each run for the transpose of a `CsrMatrix`"), "{text}");
    assert!(
        text.contains("; let `sparse.convert` write what is multiplied, such as `a.transposed()`"),
        "{text}"
    );
    // The step that the message tells helps.
    let transpose = CsrMatrix::allocate(&gpu, (3, 2), a.nonzeros()).unwrap();
    sparse.convert(a.transposed(), &transpose).submit().unwrap();
    sparse.spmv(fixed, 1.0, &transpose, &y, None, &x).submit().unwrap();
    assert_eq!(x.download().unwrap(), [5.0, 10.0, 15.0]);
    let text = refused(sparse.spmv(any, 1.0, &a, &x, None, &a.values().view(..2).unwrap()).submit());
    assert!(text.contains("`a.values` and `y` share memory"), "{text}");
    let (b, c) = (gpu.zeros::<f32>(12).unwrap(), gpu.zeros::<f32>(12).unwrap());
    let spmm = |b, c| refused(sparse.spmm(any, 1.0, &a, b, None, c).submit());
    let text = spmm(Matrix::new(&b, 2, 4), Matrix::new(&c, 2, 4));
    assert!(text.contains("2 x 3 times 2 x 4 into 2 x 4"), "{text}");
    let text = spmm(Matrix::new(&b, 3, 4), Matrix::new(&c, 4, 2).transposed());
    assert!(text.contains("stored in different orders"), "{text}");
    let text = spmm(Matrix::new(&b, 3, 4).leading(3), Matrix::new(&c, 2, 4));
    assert!(text.contains("leading dimension of 3"), "{text}");
    let text = spmm(Matrix::new(&b, 3, 5), Matrix::new(&c, 2, 5));
    assert!(text.contains("`b` has 48 bytes and must have 60"), "{text}");
    let equal_bits = |b, c| refused(sparse.spmm(fixed, 1.0, &a, b, None, c).submit());
    let text = equal_bits(Matrix::new(&b, 3, 3), Matrix::new(&c, 2, 3).leading(4));
    assert!(text.contains("`Determinism::RunToRun` with rows of `b` that are 3 elements of f32 apart; let them begin at multiples of 16 bytes with `.leading(…)`, or use `Determinism::Any`"), "{text}");
    let odd = c.view(1..).unwrap();
    let text = equal_bits(Matrix::new(&b, 3, 4), Matrix::new(&odd, 2, 4));
    assert!(text.contains("`c` does not begin at a multiple of 16 bytes"), "{text}");
    let text = refused(sparse.to_dense(&a, Matrix::new(&b, 3, 2)).submit());
    assert!(text.contains("a matrix of 2 x 3 into 3 x 2"), "{text}");
    let numbers = gpu.zeros::<i32>(3).unwrap();
    let large = (2, 1_usize << 31);
    let wide = CsrMatrix::from_buffers(large, numbers.clone(), numbers, gpu.zeros::<f32>(3).unwrap());
    let text = refused(wide);
    assert!(text.contains("2147483648 columns with indices of type i32; use indices of type i64"), "{text}");
    assert_eq!(y.download().unwrap(), [5.0; 2], "nothing was changed");
}

/// What the simulated device says of a matrix whose offsets and indices the host does not know.
fn finding(offsets: [i32; 3], indices: [i32; 2]) -> String {
    let wrong = |gpu: &DeviceRuntime| {
        let sparse = Sparse::new(gpu);
        let buffers = (gpu.upload(&offsets)?, gpu.upload(&indices)?, gpu.upload(&[1.0_f32, 2.0])?);
        let a =
            CsrMatrix::from_buffers((2, 3), buffers.0, buffers.1, buffers.2).map_err(kiln::Error::other)?;
        let (x, y) = (gpu.upload(&[1.0_f32; 3])?, gpu.allocate::<f32>(2)?);
        let call = sparse.spmv(Determinism::Any, 1.0, &a, &x, None, &y);
        call.submit().map(drop).map_err(kiln::Error::other)?;
        gpu.synchronize()
    };
    kiln::testing::check(0..1, wrong).unwrap_err().to_string()
}

#[test]
fn indices_that_are_out_of_range_are_found_on_the_device() {
    let text = finding([0, 1, 2], [0, 3]);
    let wanted = "sparse.spmv: `a.indices`: element 1 is in column 3 of 3; count columns from 0, and look at the matrix with `check_indices`";
    assert!(text.contains(wanted), "{text}");
    let text = finding([0, 1, 2], [-1, 0]);
    assert!(text.contains("sparse.spmv: `a.indices`: element 0 is in column -1 of 3; "), "{text}");
    let text = finding([0, 1, 7], [0, 1]);
    let wanted = "sparse.spmv: `a.offsets`: row 1 goes from 1 to 7 of 2 elements; let offsets ascend from 0 to the number of elements, and look";
    assert!(text.contains(wanted), "{text}");
}

#[test]
fn only_elements_that_are_used_must_be_written() {
    let product = |gpu: &DeviceRuntime, written: usize| {
        let sparse = Sparse::new(gpu);
        // Columns 0 and 2 alone.
        let triplets = [(0, 0, 1.0_f32), (1, 2, 2.0)];
        let a: CsrMatrix<f32> =
            CsrMatrix::from_triplets(gpu, (2, 3), &triplets).map_err(kiln::Error::other)?;
        let (x, y) = (gpu.allocate::<f32>(3)?, gpu.allocate::<f32>(2)?);
        x.view(0..1)?.upload(&[1.0])?;
        x.view(written..written + 1)?.upload(&[1.0])?;
        let call = sparse.spmv(Determinism::Any, 1.0, &a, &x, None, &y);
        call.submit().map(drop).map_err(kiln::Error::other)?;
        gpu.synchronize()
    };
    kiln::testing::check(0..1, |gpu| product(gpu, 2)).unwrap();
    let failure = kiln::testing::check(0..1, |gpu| product(gpu, 1)).unwrap_err().to_string();
    assert!(failure.contains("sparse.spmv") && failure.contains("never written"), "{failure}");
}
