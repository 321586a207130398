//! A factor of 0: matrices that are not read must fit as with every other factor.

use kiln::memory::MemoryConfig;
use kiln::recovery::DeviceSpec;
use kiln::{DeviceRuntime, GpuRef, RuntimeConfig};
use kiln_libs::blas::{Blas, Diagonal, F8E4M3, Matrix, Side, Triangle};
use kiln_libs::sparse::{CooMatrix, CsrMatrix, Determinism, Sparse};
use kiln_libs::{LibraryError, Result};

const KIND: (Triangle, Diagonal) = (Triangle::Lower, Diagonal::Stored);

fn square(buffer: &GpuRef<f32>) -> Matrix<'_, f32> {
    Matrix::new(buffer, 2, 2)
}

#[track_caller]
fn refused<T: std::fmt::Debug>(answer: Result<T>, wanted: &str) {
    let error = answer.unwrap_err();
    assert!(matches!(error, LibraryError::Argument { .. }), "{error}");
    assert!(error.to_string().starts_with(wanted), "{error} is not {wanted}");
}

#[test]
fn short_factors_are_refused_with_a_factor_of_zero() {
    let gpu = DeviceRuntime::simulated(1).unwrap();
    let blas = Blas::new(&gpu);
    let [a, b, c] = [(); 3].map(|()| gpu.upload(&[1.0_f32; 4]).unwrap());
    let short = gpu.upload(&[1.0_f32; 3]).unwrap();
    for alpha in [0.0, 1.0] {
        let product = |a, b, c| blas.matmul(square(a), square(b), square(c)).alpha(alpha).submit();
        refused(product(&short, &b, &c), "blas.matmul: `a` has 12 bytes and must have 16; ");
        refused(product(&a, &short, &c), "blas.matmul: `b` has 12 bytes and must have 16; ");
        refused(product(&a, &b, &short), "blas.matmul: `c` has 12 bytes and must have 16; ");
        let prepared = blas.matmul(square(&a), square(&short), square(&c)).alpha(alpha);
        refused(prepared.prepare(), "blas.matmul: `b` has 12 bytes and must have 16; ");
        let prepared = blas.matmul(square(&a), square(&b), square(&c)).alpha(alpha).prepare().unwrap();
        refused(prepared.submit(&short, &b, &c), "blas.matmul: `a` has 12 bytes and must have 16; ");
        let recorded = blas.matmul(square(&a), square(&short), square(&c)).alpha(alpha);
        refused(recorded.record(&mut gpu.graph()), "blas.matmul: `b` has 12 bytes and must have 16; ");
        let sum = |a, beta, b| blas.geam(alpha, square(a), Some((beta, square(b))), square(&c)).submit();
        for beta in [0.0, 1.0] {
            refused(sum(&short, beta, &b), "blas.geam: `a` has 12 bytes and must have 16; ");
            refused(sum(&a, beta, &short), "blas.geam: `b` has 12 bytes and must have 16; ");
        }
        let one = blas.geam(alpha, square(&short), None, square(&c)).submit();
        refused(one, "blas.geam: `a` has 12 bytes and must have 16; ");
        let symm = |a, b| {
            blas.symm(Side::Left, alpha, (square(a), Triangle::Lower), square(b), None, square(&c)).submit()
        };
        refused(symm(&short, &b), "blas.symm: `a` has 12 bytes and must have 16; ");
        refused(symm(&a, &short), "blas.symm: `b` has 12 bytes and must have 16; ");
        let trmm = |a, b| blas.trmm(Side::Left, alpha, square(a), KIND, square(b), square(&c)).submit();
        refused(trmm(&short, &b), "blas.trmm: `a` has 12 bytes and must have 16; ");
        refused(trmm(&a, &short), "blas.trmm: `b` has 12 bytes and must have 16; ");
        let syrk = blas.syrk(alpha, square(&short), None, Triangle::Lower, square(&c)).submit();
        refused(syrk, "blas.syrk: `a` has 12 bytes and must have 16; ");
        let (x, y) = (a.view(..2).unwrap(), c.view(..2).unwrap());
        refused(
            blas.gemv(alpha, square(&short), &x, None, &y).submit(),
            "blas.gemv: `a` has 12 bytes and must have 16; ",
        );
        let trsm = blas.trsm(Side::Left, alpha, square(&short), KIND, square(&c)).submit();
        refused(trsm, "blas.trsm: `a` has 12 bytes and must have 16; ");
    }
    assert_eq!(c.download().unwrap(), [1.0; 4]);
}

#[test]
fn results_that_are_factors_are_refused_with_a_factor_of_zero() {
    let gpu = DeviceRuntime::simulated(1).unwrap();
    let blas = Blas::new(&gpu);
    let [a, c] = [(); 2].map(|()| gpu.upload(&[1.0_f32; 4]).unwrap());
    for alpha in [0.0, 1.0] {
        for beta in [0.0, 1.0] {
            let product = |a, b| blas.matmul(square(a), square(b), square(&c)).alpha(alpha).beta(beta);
            refused(product(&c, &a).submit(), "blas.matmul: `a` and `c` share memory");
            refused(product(&a, &c).submit(), "blas.matmul: `b` and `c` share memory");
            refused(product(&a, &c).prepare(), "blas.matmul: `b` and `c` share memory");
            refused(product(&a, &c).record(&mut gpu.graph()), "blas.matmul: `b` and `c` share memory");
            let sum = |a, b| blas.geam(alpha, square(a), Some((beta, square(b))), square(&c)).submit();
            refused(sum(&c, &a), "blas.geam: `a` and `c` share memory");
            refused(sum(&a, &c), "blas.geam: `b` and `c` share memory");
        }
        let bias = c.view(..2).unwrap();
        let biased = blas.matmul(square(&a), square(&a), square(&c)).alpha(alpha).bias(&bias).submit();
        refused(biased, "blas.matmul: `c` and `bias` share memory");
        refused(blas.geam(alpha, square(&c), None, square(&c)).submit(), "blas.geam: `a` and `c` share");
        let symm = |a, b| {
            blas.symm(Side::Left, alpha, (square(a), Triangle::Lower), square(b), None, square(&c)).submit()
        };
        refused(symm(&c, &a), "blas.symm: `a` and `c` share memory");
        refused(symm(&a, &c), "blas.symm: `b` and `c` share memory");
        let trmm = |a, b| blas.trmm(Side::Left, alpha, square(a), KIND, square(b), square(&c)).submit();
        refused(trmm(&c, &a), "blas.trmm: `a` and `c` share memory");
        refused(trmm(&a, &c), "blas.trmm: `b` and `c` share memory");
    }
    let prepared = blas.matmul(square(&a), square(&a), square(&c)).alpha(0.0).prepare().unwrap();
    refused(prepared.submit(&c, &a, &c), "blas.matmul: `a` and `c` share memory");
    assert_eq!(c.download().unwrap(), [1.0; 4]);
}

#[test]
fn types_and_scale_factors_are_checked_with_a_factor_of_zero() {
    let gpu = DeviceRuntime::simulated(1).unwrap();
    let blas = Blas::new(&gpu);
    let (a, c) = (gpu.upload(&[F8E4M3(0x38); 256]).unwrap(), gpu.upload(&[1.0_f32; 256]).unwrap());
    let eights = Matrix::new(&a, 16, 16);
    let (one, none) = (gpu.upload(&[1.0_f32]).unwrap(), gpu.zeros::<f32>(0).unwrap());
    for alpha in [0.0, 1.0] {
        let product = blas.matmul(eights, eights.transposed(), Matrix::new(&c, 16, 16)).alpha(alpha);
        refused(
            product.scales(&none, &one).submit(),
            "blas.matmul: `a_scale` has 0 elements and must have 1",
        );
    }
    assert_eq!(c.download().unwrap(), [1.0; 256]);
}

/// A sparse matrix that stores no elements, or has a factor of 0, reads nothing of the other factor, which must fit as with every other matrix.
#[test]
fn dense_factors_are_checked_where_a_sparse_matrix_has_no_elements() {
    let gpu = DeviceRuntime::simulated(1).unwrap();
    let sparse = Sparse::new(&gpu);
    let [x, y] = [(); 2].map(|()| gpu.upload(&[1.0_f32; 4]).unwrap());
    let short = gpu.upload(&[1.0_f32; 3]).unwrap();
    let matrices = [[0.0_f32; 4], [1.0, 0.0, 0.0, 2.0]];
    for (dense, alpha) in matrices.into_iter().flat_map(|dense| [(dense, 0.0), (dense, 1.0)]) {
        let a: CsrMatrix<f32> = CsrMatrix::from_dense(&gpu, (2, 2), &dense).unwrap();
        let coo: CooMatrix<f32> = CooMatrix::from_dense(&gpu, (2, 2), &dense).unwrap();
        let (two, other) = (x.view(..2).unwrap(), x.view(1..3).unwrap());
        let spmv = |x, y| sparse.spmv(Determinism::Any, alpha, &a, x, None, y).submit();
        refused(spmv(&two, &two), "sparse.spmv: `x` and `y` share memory");
        refused(spmv(&two, &other), "sparse.spmv: `x` and `y` share memory");
        let spmm = |b, c| sparse.spmm(Determinism::Any, alpha, &a, b, None, c).submit();
        refused(spmm(square(&x), square(&x)), "sparse.spmm: `b` and `c` share memory");
        refused(spmm(square(&short), square(&y)), "sparse.spmm: `b` has 12 bytes and must have 16");
        refused(spmm(square(&x), square(&short)), "sparse.spmm: `c` has 12 bytes and must have 16");
        refused(spmm(square(&x).leading(1), square(&y)), "sparse.spmm: `b` has a leading dimension of 1");
        let spmm = sparse.spmm(Determinism::Any, alpha, &coo, square(&x), None, square(&x)).submit();
        refused(spmm, "sparse.spmm: `b` and `c` share memory");
        let refused_dense = sparse.to_dense(&a, square(&short)).submit();
        refused(refused_dense, "sparse.to_dense: `dense` has 12 bytes and must have 16");
    }
    assert_eq!((x.download().unwrap(), y.download().unwrap()), (vec![1.0; 4], vec![1.0; 4]));
}

/// A sum without terms needs memory for zeros: as much as the result has rows or columns, so that the result is looked at first.
#[test]
fn results_without_terms_are_checked_before_memory_is_allocated_for_them() {
    // What a wrong size asks for does not fit this limit, so that an allocation would be told instead of the size.
    let memory = MemoryConfig { limit_bytes: Some(4 << 20), ..MemoryConfig::default() };
    let config = RuntimeConfig { memory, ..RuntimeConfig::default() };
    let gpu = DeviceRuntime::open(&DeviceSpec::simulated(1), config).unwrap();
    let blas = Blas::new(&gpu);
    let [a, b, c] = [(); 3].map(|()| gpu.upload(&[1.0_f32; 16]).unwrap());
    for rows in [17, 1 << 30, 1 << 58] {
        let wanted = format!("blas.matmul: `c` has 64 bytes and must have {}; ", 4_u128 * rows as u128);
        let product = |columns| {
            let c = Matrix::new(&c, rows, 1);
            blas.matmul(Matrix::new(&a, rows, columns), Matrix::new(&b, columns, 1), c)
        };
        refused(product(0).submit(), &wanted);
        refused(product(0).record(&mut gpu.graph()), &wanted);
        refused(product(0).prepare(), &wanted);
        let wide = blas.matmul(Matrix::new(&a, 1, 0), Matrix::new(&b, 0, rows), Matrix::new(&c, 1, rows));
        refused(wide.submit(), &wanted);
    }
    let far = usize::MAX;
    let product = blas.matmul(Matrix::new(&a, far, 0), Matrix::new(&b, 0, far), Matrix::new(&c, far, far));
    refused(
        product.submit(),
        "blas.matmul: `c` has 2^59 elements or more: a matrix of 18446744073709551615 x 18446744073709551615; ",
    );
    let apart = Matrix::new(&c, 2, 2).leading(1);
    let product = blas.matmul(Matrix::new(&a, 2, 0), Matrix::new(&b, 0, 2), apart).submit();
    refused(product, "blas.matmul: `c` has a leading dimension of 1 for rows of 2 elements; ");
    let bias = c.view(..2).unwrap();
    let product = blas.matmul(Matrix::new(&a, 2, 0), Matrix::new(&b, 0, 2), square(&c)).bias(&bias);
    refused(product.submit(), "blas.matmul: `c` and `bias` share memory");
    for rows in [5, 1 << 29, far] {
        let syrk =
            blas.syrk(1.0, Matrix::new(&a, rows, 0), None, Triangle::Lower, Matrix::new(&c, rows, rows));
        refused(syrk.submit(), "blas.syrk: `c` has ");
    }
    assert_eq!(c.download().unwrap(), [1.0; 16]);
}
