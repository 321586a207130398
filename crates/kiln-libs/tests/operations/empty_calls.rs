//! Calls on nothing: a result without elements stays as it is, and a sum without terms is zero.

use kiln::DeviceRuntime;
use kiln_libs::blas::{Activation, Blas, Matrix, Triangle, Vector};
use kiln_libs::dnn::{Dnn, Tensor};
use kiln_libs::fft::{Fft, Scale};
use kiln_libs::sparse::{CscMatrix, CsrMatrix, Determinism, Sparse};

use crate::rig::everywhere;

#[test]
fn a_result_without_elements_is_left_alone() {
    everywhere("a_result_without_elements_is_left_alone", |gpu| {
        let (blas, fft, dnn) = (Blas::new(gpu), Fft::new(gpu), Dnn::new(gpu));
        let (none, kept) = (gpu.zeros::<f32>(0).unwrap(), gpu.upload(&[7.0_f32; 12]).unwrap());
        let matrix = |rows, columns| Matrix::new(&kept, rows, columns);
        let other = gpu.upload(&[1.0_f32; 12]).unwrap();
        let given = |rows, columns| Matrix::new(&other, rows, columns);
        for (rows, columns) in [(0, 3), (4, 0), (0, 0)] {
            let product = || blas.matmul(given(rows, 2), given(2, columns), matrix(rows, columns));
            product().submit().unwrap().wait().unwrap();
            product().operation().unwrap();
            assert_eq!(product().load().unwrap(), 0);
            let mut graph = gpu.graph();
            product().record(&mut graph).unwrap();
            graph.build().unwrap().replay().unwrap();
        }
        blas.matmul(given(2, 2).batch(0), given(2, 2).batch(0), matrix(2, 2).batch(0)).submit().unwrap();
        blas.axpy(2.0, &none, &none).submit().unwrap();
        blas.scal(2.0, Vector::new(&none).step(2)).submit().unwrap();
        blas.ger(1.0, &none, &other.view(..3).unwrap(), matrix(0, 3)).submit().unwrap();
        blas.gemv(1.0, matrix(0, 3), &other.view(..3).unwrap(), None, &none).submit().unwrap();
        blas.syrk(1.0, given(0, 3), None, Triangle::Lower, matrix(0, 0)).submit().unwrap();
        let signal = kept.cast::<[f32; 2]>().unwrap();
        fft.transform(&[6]).batch(0).scale(Scale::ByLength).forward_in_place(&signal).submit().unwrap();
        let filter = gpu.upload(&[1.0_f32; 4]).unwrap();
        let (x, y) = (Tensor::new(&other, [0, 1, 3, 3]), Tensor::new(&kept, [0, 1, 2, 2]));
        dnn.convolution(x, Tensor::new(&filter, [1, 1, 2, 2]), y).submit().unwrap();
        assert_eq!(kept.download().unwrap(), [7.0; 12]);
    });
}

#[test]
fn a_sum_without_terms_is_zero() {
    everywhere("a_sum_without_terms_is_zero", |gpu| {
        let blas = Blas::new(gpu);
        let (none, bias) = (gpu.zeros::<f32>(0).unwrap(), gpu.upload(&[-1.0_f32, 5.0]).unwrap());
        let result = || gpu.upload(&[1.0_f32, 2.0, 3.0, 4.0]).unwrap();
        let product = |c| blas.matmul(Matrix::new(&none, 2, 0), Matrix::new(&none, 0, 2), c);
        let c = result();
        product(Matrix::new(&c, 2, 2)).submit().unwrap();
        assert_eq!(c.download().unwrap(), [0.0; 4]);
        let c = result();
        product(Matrix::new(&c, 2, 2)).beta(2.0).submit().unwrap();
        assert_eq!(c.download().unwrap(), [2.0, 4.0, 6.0, 8.0]);
        // Bias and activation come behind the sum, and gaps stay.
        let wide = gpu.upload(&[1.0_f32, 2.0, 9.0, 3.0, 4.0]).unwrap();
        let call = product(Matrix::new(&wide, 2, 2).leading(3)).beta(-1.0).bias(&bias);
        call.activation(Activation::Relu).submit().unwrap();
        assert_eq!(wide.download().unwrap(), [0.0, 3.0, 9.0, 0.0, 1.0]);
        // Column after column, in a graph.
        let c = result();
        let mut graph = gpu.graph();
        product(Matrix::new(&c, 2, 2).transposed()).beta(3.0).record(&mut graph).unwrap();
        let graph = graph.build().unwrap();
        graph.replay().unwrap();
        graph.replay().unwrap();
        assert_eq!(c.download().unwrap(), [9.0, 18.0, 27.0, 36.0]);
        let number = gpu.upload(&[7.0_f32]).unwrap();
        blas.dot(&none, &none, &number).submit().unwrap();
        assert_eq!(number.download().unwrap(), [0.0]);
        number.fill(7.0).unwrap();
        blas.nrm2(&none, &number).submit().unwrap();
        assert_eq!(number.download().unwrap(), [0.0]);
        let y = result();
        let every_second = Vector::new(&y).step(2);
        blas.gemv(1.0, Matrix::new(&none, 2, 0), &none, Some(3.0), every_second).submit().unwrap();
        assert_eq!(y.download().unwrap(), [3.0, 2.0, 9.0, 4.0]);
        let c = result();
        let call =
            blas.syrk(1.0, Matrix::new(&none, 2, 0), Some(2.0), Triangle::Lower, Matrix::new(&c, 2, 2));
        call.submit().unwrap();
        assert_eq!(c.download().unwrap(), [2.0, 2.0, 6.0, 8.0], "one triangle");
        let filters = gpu.upload(&[1.0_f32; 4]).unwrap();
        let (x, dy) = (Tensor::new(&none, [0, 1, 3, 3]), Tensor::new(&none, [0, 1, 2, 2]));
        Dnn::new(gpu)
            .convolution_backward_filter(x, dy, Tensor::new(&filters, [1, 1, 2, 2]))
            .submit()
            .unwrap();
        assert_eq!(filters.download().unwrap(), [0.0; 4]);
    });
}

#[test]
fn a_sparse_matrix_without_elements_is_zero() {
    everywhere("a_sparse_matrix_without_elements_is_zero", |gpu: &DeviceRuntime| {
        let sparse = Sparse::new(gpu);
        let rows: CsrMatrix<f64> = CsrMatrix::from_triplets(gpu, (2, 3), &[]).unwrap();
        let columns: CscMatrix<f64> = CscMatrix::from_triplets(gpu, (2, 3), &[]).unwrap();
        let (x, y) = (gpu.upload(&[1.0_f64; 3]).unwrap(), gpu.upload(&[5.0_f64, 6.0]).unwrap());
        sparse.spmv(Determinism::RunToRun, 1.0, &rows, &x, Some(2.0), &y).submit().unwrap();
        assert_eq!(y.download().unwrap(), [10.0, 12.0]);
        sparse.spmv(Determinism::Any, 1.0, &columns, &x, None, &y).submit().unwrap();
        assert_eq!(y.download().unwrap(), [0.0; 2]);
        let b = gpu.upload(&[1.0_f64; 6]).unwrap();
        let c = gpu.upload(&[1.0_f64, 2.0, 9.0, 3.0, 4.0]).unwrap();
        let (b, dense) = (Matrix::new(&b, 3, 2), Matrix::new(&c, 2, 2).leading(3));
        sparse.spmm(Determinism::Any, 1.0, &rows, b, Some(-1.0), dense).submit().unwrap();
        assert_eq!(c.download().unwrap(), [-1.0, -2.0, 9.0, -3.0, -4.0]);
        let c = gpu.upload(&[1.0_f64; 6]).unwrap();
        sparse.to_dense(&rows, Matrix::new(&c, 2, 3)).submit().unwrap();
        assert_eq!(c.download().unwrap(), [0.0; 6]);
    });
}
