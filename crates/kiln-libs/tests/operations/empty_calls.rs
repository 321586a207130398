//! Calls on nothing: a result without elements stays as it is, and a sum without terms is zero.

use kiln::DeviceRuntime;
use kiln_libs::blas::{Activation, Blas, Matrix, Side, Triangle, Vector};
use kiln_libs::dnn::{AttentionTensor, Dnn, Tensor};
use kiln_libs::fft::{Fft, Scale};
use kiln_libs::solve::Solve;
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
fn transforms_of_nothing_do_nothing_and_a_spectrum_of_nothing_is_zero() {
    everywhere("transforms_of_nothing_do_nothing", |gpu| {
        let fft = Fft::new(gpu);
        let (none, kept) = (gpu.zeros::<f32>(0).unwrap(), gpu.upload(&[[7.0_f32, 7.0]; 6]).unwrap());
        let nothing = gpu.zeros::<[f32; 2]>(0).unwrap();
        for extents in [&[0][..], &[0, 4], &[3, 0], &[2, 0, 2]] {
            let call = || fft.transform(extents).batch(2).scale(Scale::Unitary);
            call().forward(&nothing, &kept).submit().unwrap().wait().unwrap();
            call().inverse_in_place(&kept).submit().unwrap();
            call().real_inverse(&kept, &none).submit().unwrap();
            assert_eq!(call().forward(&nothing, &kept).load().unwrap(), 0);
            call().forward(&nothing, &kept).operation().unwrap();
            let mut graph = gpu.graph();
            call().forward(&nothing, &kept).record(&mut graph).unwrap();
            graph.build().unwrap().replay().unwrap();
        }
        fft.transform(&[0, 4]).real_forward(&none, &kept).submit().unwrap();
        assert_eq!(kept.download().unwrap(), [[7.0, 7.0]; 6]);
        // Rows of no numbers have a mean of zero each.
        fft.transform(&[2, 0]).batch(2).real_forward(&none, &kept).submit().unwrap();
        let wanted = [[0.0; 2], [0.0; 2], [0.0; 2], [0.0; 2], [7.0; 2], [7.0; 2]];
        assert_eq!(kept.download().unwrap(), wanted);
        fft.transform(&[0]).real_forward_in_place(&kept.view(4..5).unwrap()).submit().unwrap();
        assert_eq!(kept.download().unwrap()[4..], [[0.0; 2], [7.0; 2]]);
        let error = fft.transform(&[7, 0]).real_forward(&none, &kept).submit().unwrap_err();
        assert_eq!(
            error.to_string(),
            "fft.real_forward: `output` has 48 bytes and must have 56; use a longer buffer, or smaller sizes"
        );
    });
}

#[test]
fn convolutions_and_pools_of_nothing() {
    everywhere("convolutions_and_pools_of_nothing", |gpu| {
        let dnn = Dnn::new(gpu);
        let new = || gpu.upload(&[7.0_f32; 36]).unwrap();
        for [images, channels, filters] in [[0, 2, 3], [2, 0, 3], [2, 2, 0], [0, 0, 0]] {
            let (x, w, y) = (new(), new(), new());
            let sizes = ([images, channels, 3, 3], [filters, channels, 2, 2], [images, filters, 2, 2]);
            let (image, filter) = (Tensor::new(&x, sizes.0), Tensor::new(&w, sizes.1));
            let result = Tensor::new(&y, sizes.2);
            // What has elements is a sum without terms.
            let judge = |buffer: &kiln::GpuRef<f32>, sizes: [usize; 4]| {
                let (found, zeros) = (buffer.download().unwrap(), sizes.iter().product::<usize>());
                assert!(found[..zeros].iter().all(|number| *number == 0.0), "{sizes:?}");
                assert!(found[zeros..].iter().all(|number| *number == 7.0), "{sizes:?}");
                buffer.fill(7.0).unwrap();
            };
            dnn.convolution(image, filter, result).submit().unwrap().wait().unwrap();
            judge(&y, sizes.2);
            dnn.convolution_backward_data(result, filter, image).submit().unwrap();
            judge(&x, sizes.0);
            dnn.convolution_backward_filter(image, result, filter).submit().unwrap();
            judge(&w, sizes.1);
        }
        let (x, y) = (new(), new());
        for [images, channels] in [[0, 2], [2, 0]] {
            let (image, result) =
                (Tensor::new(&x, [images, channels, 4, 4]), Tensor::new(&y, [images, channels, 2, 2]));
            dnn.max_pool(image, [2, 2], result).submit().unwrap();
            dnn.average_pool(image, [2, 2], result).submit().unwrap();
            dnn.average_pool_backward(result, [2, 2], image).submit().unwrap();
        }
        assert_eq!((x.download().unwrap(), y.download().unwrap()), (vec![7.0; 36], vec![7.0; 36]));
        // The other sizes must still fit.
        let (image, filter) = (Tensor::new(&x, [0, 2, 3, 3]), Tensor::new(&y, [1, 2, 4, 4]));
        assert!(dnn.convolution(image, filter, Tensor::new(&y, [0, 1, 2, 2])).submit().is_err());
    });
}

/// No columns of dense matrices, in both layouts, of all formats and with every factor.
#[test]
fn sparse_products_with_no_columns_do_nothing() {
    everywhere("sparse_products_with_no_columns_do_nothing", |gpu| {
        let sparse = Sparse::new(gpu);
        let dense = [1.0_f32, 0.0, 2.0, 0.0, 3.0, 0.0];
        let csr: CsrMatrix<f32> = CsrMatrix::from_dense(gpu, (2, 3), &dense).unwrap();
        let csc: CscMatrix<f32> = CscMatrix::from_dense(gpu, (2, 3), &dense).unwrap();
        let (none, kept) = (gpu.zeros::<f32>(0).unwrap(), gpu.upload(&[7.0_f32; 6]).unwrap());
        for buffer in [&none, &kept] {
            for (alpha, beta) in [(1.0, None), (1.0, Some(2.0)), (0.0, Some(0.0))] {
                let (b, c) = (Matrix::new(buffer, 3, 0), Matrix::new(buffer, 2, 0));
                let call = || sparse.spmm(Determinism::Any, alpha, &csr, b, beta, c);
                call().submit().unwrap().wait().unwrap();
                assert_eq!(call().load().unwrap(), 0);
                let mut graph = gpu.graph();
                call().record(&mut graph).unwrap();
                graph.build().unwrap().replay().unwrap().wait().unwrap();
                sparse.spmm(Determinism::Any, alpha, &csc, b, beta, c).submit().unwrap();
                let (b, c) = (Matrix::new(buffer, 0, 3).transposed(), Matrix::new(buffer, 0, 2).transposed());
                sparse.spmm(Determinism::RunToRun, alpha, &csr, b, beta, c).submit().unwrap();
            }
        }
        assert_eq!(kept.download().unwrap(), [7.0; 6]);
        // The other sizes must still fit.
        let wrong = sparse.spmm(
            Determinism::Any,
            1.0,
            &csr,
            Matrix::new(&none, 2, 0),
            None,
            Matrix::new(&none, 2, 0),
        );
        assert!(wrong.submit().unwrap_err().to_string().contains("give m x k, k x n and m x n"));
    });
}

#[test]
fn systems_without_right_hand_sides_are_solved_by_doing_nothing() {
    everywhere("systems_without_right_hand_sides_are_solved_by_doing_nothing", |gpu| {
        let solve = Solve::new(gpu);
        let values = [4.0_f64, 2.0, 2.0, 5.0];
        let (a, none, pivots) =
            (gpu.upload(&values).unwrap(), gpu.zeros::<f64>(0).unwrap(), gpu.upload(&[1_i64, 2]).unwrap());
        let (square, lower) = (Matrix::new(&a, 2, 2), Triangle::Lower);
        for b in [Matrix::new(&none, 2, 0), Matrix::new(&none, 0, 2).transposed()] {
            solve.cholesky_solve(square, lower, b).submit().unwrap().wait().unwrap();
            solve.lu_solve(square, &pivots, b).submit().unwrap().wait().unwrap();
            assert_eq!(solve.lu_solve(square, &pivots, b).load().unwrap(), 0);
            solve.cholesky_solve_batched(square, lower, b).submit().unwrap().wait().unwrap();
            solve.lu_solve_batched(square, &pivots, b).submit().unwrap().wait().unwrap();
            let mut graph = gpu.graph();
            let (_, info) = solve.lu_solve(square, &pivots, b).record(&mut graph).unwrap();
            let (_, batch) = solve.lu_solve_batched(square, &pivots, b).record(&mut graph).unwrap();
            graph.build().unwrap().replay().unwrap();
            info.check().unwrap();
            batch.check().unwrap();
        }
        assert_eq!(a.download().unwrap(), values);
        // What is not `b` must still fit.
        let short = pivots.view(..1).unwrap();
        let error = solve.lu_solve(square, &short, Matrix::new(&none, 2, 0)).submit().unwrap_err();
        assert!(error.to_string().contains("`pivots` has 1 elements and must have 2"), "{error}");
        assert!(solve.cholesky_solve(square, lower, Matrix::new(&none, 3, 0)).submit().is_err());
        // No matrices at all.
        let no = |buffer| Matrix::new(buffer, 2, 2).batch(0);
        let no_pivots = pivots.view(..0).unwrap();
        solve.cholesky_batched(no(&a), lower).submit().unwrap().wait().unwrap();
        solve.lu_batched(no(&a), &no_pivots).submit().unwrap().wait().unwrap();
        solve.lu_solve_batched(no(&a), &no_pivots, no(&none)).submit().unwrap().wait().unwrap();
        assert_eq!(a.download().unwrap(), values);
    });
}

#[test]
fn q_is_applied_to_nothing_and_least_squares_without_sides_factor_the_matrix() {
    everywhere("q_is_applied_to_nothing", |gpu| {
        let solve = Solve::new(gpu);
        let (a, tau) = (gpu.upload(&[3.0_f64, 4.0]).unwrap(), gpu.zeros::<f64>(1).unwrap());
        let (column, none) = (Matrix::new(&a, 1, 2).transposed(), gpu.zeros::<f64>(0).unwrap());
        let ticket = solve.least_squares(column, Matrix::new(&none, 2, 0)).submit().unwrap();
        ticket.wait().unwrap();
        let factors = a.download().unwrap();
        // The first element of R is the length of the column, with either sign.
        assert!((factors[0].abs() - 5.0).abs() < 1e-12, "{factors:?}");
        for c in [Matrix::new(&none, 2, 0), Matrix::new(&none, 0, 2).transposed()] {
            solve.apply_q(Side::Left, column, &tau, c).submit().unwrap().wait().unwrap();
            solve.apply_q_transposed(Side::Left, column, &tau, c).submit().unwrap().wait().unwrap();
        }
        solve.apply_q(Side::Right, column, &tau, Matrix::new(&none, 0, 2)).submit().unwrap().wait().unwrap();
        assert!(solve.apply_q(Side::Left, column, &tau, Matrix::new(&none, 3, 0)).submit().is_err());
        assert_eq!(a.download().unwrap(), factors);
    });
}

#[test]
fn attention_of_nothing_does_nothing() {
    let gpu = DeviceRuntime::simulated(1).unwrap();
    let (dnn, none) = (Dnn::new(&gpu), gpu.zeros::<half::f16>(0).unwrap());
    let keys = gpu.zeros::<half::f16>(2 * 64).unwrap();
    for (queries, keys_of) in [([0, 1, 2, 64], [0, 1, 2, 64]), ([1, 1, 0, 64], [1, 1, 2, 64])] {
        let (q, k) = (AttentionTensor::new(&none, queries), AttentionTensor::new(&keys, keys_of));
        dnn.attention(q, k, k, q).submit().unwrap().wait().unwrap();
        let wide = |dimensions: [usize; 4]| {
            AttentionTensor::new(&keys, [dimensions[0], dimensions[1], dimensions[2], 65])
        };
        assert!(dnn.attention(wide(queries), wide(keys_of), wide(keys_of), wide(queries)).submit().is_err());
    }
}

#[test]
fn a_product_of_nothing_is_tuned_in_no_time() {
    let gpu = DeviceRuntime::simulated(1).unwrap();
    let (blas, x) = (Blas::new(&gpu), gpu.zeros::<f32>(4).unwrap());
    let tuned =
        blas.matmul(Matrix::new(&x, 0, 2), Matrix::new(&x, 2, 2), Matrix::new(&x, 0, 2)).tune().unwrap();
    assert_eq!((tuned.algorithm, tuned.measured, tuned.time), (0, 0, std::time::Duration::ZERO));
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

#[test]
fn systems_without_unknowns_and_products_without_reflections_do_nothing() {
    everywhere("systems_without_unknowns_and_products_without_reflections_do_nothing", |gpu| {
        let solve = Solve::new(gpu);
        let (none, kept) = (gpu.zeros::<f64>(0).unwrap(), gpu.upload(&[7.0_f64; 6]).unwrap());
        let (pivots, tau) = (gpu.zeros::<i64>(0).unwrap(), gpu.zeros::<f64>(0).unwrap());
        let (empty, lower) = (Matrix::new(&none, 0, 0), Triangle::Lower);
        let sides = Matrix::new(&kept, 0, 3);
        let tall = Matrix::new(&none, 0, 3).transposed(); // three rows, no columns
        let c = Matrix::new(&kept, 3, 2);
        let by_columns = Matrix::new(&kept, 2, 3).transposed();
        solve.lu_solve(empty, &pivots, sides).submit().unwrap().wait().unwrap();
        solve.cholesky_solve(empty, lower, sides).submit().unwrap().wait().unwrap();
        solve.form_q(tall, &tau).submit().unwrap().wait().unwrap();
        solve.apply_q(Side::Left, tall, &tau, c).submit().unwrap().wait().unwrap();
        solve.apply_q_transposed(Side::Left, tall, &tau, c).submit().unwrap().wait().unwrap();
        solve.least_squares(tall, by_columns).submit().unwrap().wait().unwrap();
        assert_eq!(solve.lu_solve(empty, &pivots, sides).load().unwrap(), 0);

        let mut graph = gpu.graph();
        let found = [
            solve.lu_solve(empty, &pivots, sides).record(&mut graph).unwrap().1,
            solve.cholesky_solve(empty, lower, sides).record(&mut graph).unwrap().1,
            solve.form_q(tall, &tau).record(&mut graph).unwrap().1,
            solve.apply_q(Side::Left, tall, &tau, c).record(&mut graph).unwrap().1,
            solve.least_squares(tall, by_columns).record(&mut graph).unwrap().1,
        ];
        graph.build().unwrap().replay().unwrap();
        found.iter().for_each(|info| info.check().unwrap());
        assert_eq!(kept.download().unwrap(), [7.0; 6]);

        // The rest must fit.
        let (one, two) = (gpu.zeros::<i64>(1).unwrap(), gpu.zeros::<f64>(2).unwrap());
        for (refused, wanted) in [
            (solve.lu_solve(empty, &one, sides).submit(), "`pivots` has 1 elements and must have 0"),
            (solve.lu_solve(empty, &pivots, c).submit(), "`b` is 3 x 2, and must be 0 x 2"),
            (solve.form_q(tall, &two).submit(), "`tau` has 2 elements and must have 0"),
            (solve.apply_q(Side::Right, tall, &tau, c).submit(), "factors of 3 x 0 and c of 3 x 2"),
            (solve.apply_q(Side::Left, tall, &two, c).submit(), "`tau` has 2 elements and must have 0"),
            (solve.least_squares(tall, sides).submit(), "`b` is 0 x 3, and must be 3 x 3"),
            (solve.lu(empty, &pivots).submit(), "`a` is 0 x 0; leave the call out"),
        ] {
            let error = refused.unwrap_err().to_string();
            assert!(error.contains(wanted), "{error}");
        }
    });
}
