//! Refusals speak of what the caller gave: operands by their names, leading dimensions in the caller's layout, and no number that was not given.

use kiln::DeviceRuntime;
use kiln_libs::blas::{Blas, Diagonal, Matrix, Side, Triangle, Vector};
use kiln_libs::dnn::{Dnn, Tensor};
use kiln_libs::elementwise::{Combination, ElementFunction, Elementwise};
use kiln_libs::prims::{Primitives, ScanOperator};
use kiln_libs::solve::Solve;
use kiln_libs::sparse::{CsrMatrix, Sparse};
use kiln_libs::{LibraryError, Result};

#[track_caller]
fn told<T>(answer: Result<T>, wanted: &str) {
    let error = answer.map(drop).unwrap_err();
    assert!(matches!(error, LibraryError::Argument { .. }), "{error}");
    assert!(error.to_string().contains(wanted), "{error}\nis not\n{wanted}");
}

#[test]
fn vectors_of_a_rank_one_update_keep_their_names_in_both_layouts() {
    let gpu = DeviceRuntime::simulated(1).unwrap();
    let blas = Blas::new(&gpu);
    let (x, y) = (gpu.zeros::<f32>(2).unwrap(), gpu.zeros::<f32>(3).unwrap());
    let (a, shared) = (gpu.zeros::<f32>(6).unwrap(), gpu.zeros::<f32>(8).unwrap());
    for by_columns in [false, true] {
        let matrix = |buffer| match by_columns {
            true => Matrix::new(buffer, 3, 2).transposed(),
            false => Matrix::new(buffer, 2, 3),
        };
        let (part, rest) = (shared.view(..2).unwrap(), shared.view(..6).unwrap());
        told(blas.ger(1.0, &part, &y, matrix(&rest)).submit(), "blas.ger: `x` and `a` share memory");
        let part = shared.view(..3).unwrap();
        told(blas.ger(1.0, &x, &part, matrix(&rest)).submit(), "blas.ger: `y` and `a` share memory");
        let one = gpu.zeros::<f32>(1).unwrap();
        let square = |buffer| Matrix::new(buffer, 1, 1);
        let square = |buffer| if by_columns { square(buffer).transposed() } else { square(buffer) };
        let zero = Vector::new(&one).step(0);
        told(blas.ger(1.0, zero, &one, square(&a)).submit(), "blas.ger: `x` has a step of 0");
        told(blas.ger(1.0, &one, zero, square(&a)).submit(), "blas.ger: `y` has a step of 0");
        let other = DeviceRuntime::simulated(2).unwrap();
        let foreign = other.zeros::<f32>(2).unwrap();
        let error = blas.ger(1.0, &foreign, &y, matrix(&a)).submit().unwrap_err().to_string();
        assert!(error.contains("blas.ger: `x`"), "{error}");
    }
}

#[test]
fn a_leading_dimension_is_told_in_the_layout_of_the_caller() {
    let gpu = DeviceRuntime::simulated(1).unwrap();
    let (blas, solve, sparse) = (Blas::new(&gpu), Solve::new(&gpu), Sparse::new(&gpu));
    let [a, b, c] = [(); 3].map(|()| gpu.zeros::<f32>(64).unwrap());
    let (x, y, pivots) =
        (gpu.zeros::<f32>(3).unwrap(), gpu.zeros::<f32>(3).unwrap(), gpu.zeros::<i64>(3).unwrap());
    let kind = (Triangle::Lower, Diagonal::Stored);
    let lower = Triangle::Lower;
    for (by_columns, lines, line) in [(false, "rows", "row"), (true, "columns", "column")] {
        let square = |buffer| {
            let matrix = Matrix::new(buffer, 3, 3);
            if by_columns { matrix.transposed() } else { matrix }
        };
        let short = |buffer| square(buffer).leading(2);
        let told = |answer: Result<()>, call: &str, name: &str| {
            let wanted = format!(
                "{call}: `{name}` has a leading dimension of 2 for {lines} of 3 elements; use a leading dimension that holds a {line}"
            );
            told(answer, &wanted);
        };
        told(blas.gemv(1.0, short(&a), &x, None, &y).submit().map(drop), "blas.gemv", "a");
        told(blas.ger(1.0, &x, &y, short(&a)).submit().map(drop), "blas.ger", "a");
        told(blas.syrk(1.0, short(&a), None, lower, square(&c)).submit().map(drop), "blas.syrk", "a");
        told(blas.syrk(1.0, square(&a), None, lower, short(&c)).submit().map(drop), "blas.syrk", "c");
        told(blas.trsm(Side::Left, 1.0, short(&a), kind, square(&b)).submit().map(drop), "blas.trsm", "a");
        told(blas.trsm(Side::Left, 1.0, square(&a), kind, short(&b)).submit().map(drop), "blas.trsm", "b");
        told(solve.cholesky(short(&a), lower).submit().map(drop), "solve.cholesky", "a");
        let solved = solve.cholesky_solve(short(&a), lower, square(&b)).submit().map(drop);
        told(solved, "solve.cholesky_solve", "factor");
        let solved = solve.cholesky_solve(square(&a), lower, short(&b)).submit().map(drop);
        told(solved, "solve.cholesky_solve", "b");
        told(solve.lu(short(&a), &pivots).submit().map(drop), "solve.lu", "a");
        let solved = solve.lu_solve(short(&a), &pivots, square(&b)).submit().map(drop);
        told(solved, "solve.lu_solve", "factors");
        let solved = solve.lu_solve(square(&a), &pivots, short(&b)).submit().map(drop);
        told(solved, "solve.lu_solve", "b");
        told(solve.eigenvalues(short(&a), lower, &x).submit().map(drop), "solve.eigenvalues", "a");
        told(solve.eigenvectors(short(&a), lower, &x).submit().map(drop), "solve.eigenvectors", "a");
        told(solve.singular_values(short(&a), &x).submit().map(drop), "solve.singular_values", "a");
        let (u, vt) = (Matrix::new(&b, 3, 3).transposed(), Matrix::new(&c, 3, 3));
        told(solve.svd(short(&a), &x, u, vt).submit().map(drop), "solve.svd", "a");
        told(solve.cholesky_batched(short(&a), lower).submit().map(drop), "solve.cholesky_batched", "a");
        told(solve.lu_batched(short(&a), &pivots).submit().map(drop), "solve.lu_batched", "a");
        let solved = solve.lu_solve_batched(square(&a), &pivots, short(&b)).submit().map(drop);
        told(solved, "solve.lu_solve_batched", "b");
        let applied = solve.apply_q(Side::Left, Matrix::new(&a, 3, 3).transposed(), &x, short(&b));
        told(applied.submit().map(drop), "solve.apply_q", "c");
        let offsets = gpu.zeros::<i32>(4).unwrap();
        told(sparse.count_nonzeros(short(&a), &offsets).submit().map(drop), "sparse.count_nonzeros", "dense");
        let csr = CsrMatrix::<f32>::from_dense(&gpu, (3, 3), &[1.0; 9]).unwrap();
        let solved =
            sparse.triangular_solve(lower, Diagonal::Stored, 1.0, &csr, short(&b), square(&c)).submit();
        told(solved.map(drop), "sparse.triangular_solve", "b");
    }
    let columns = Matrix::new(&a, 3, 3).transposed();
    let wanted = "`a` has a leading dimension of 2 for columns of 3 elements";
    told(solve.qr(columns.leading(2), &x).submit(), wanted);
    told(solve.form_q(columns.leading(2), &x).submit(), wanted);
    told(solve.least_squares(columns.leading(2), Matrix::new(&b, 3, 1)).submit(), wanted);
}

#[test]
fn a_batch_of_huge_matrices_is_told_by_its_size_and_not_by_a_stride() {
    let gpu = DeviceRuntime::simulated(1).unwrap();
    let (solve, blas) = (Solve::new(&gpu), Blas::new(&gpu));
    let a = gpu.zeros::<f32>(12).unwrap();
    for size in [1_usize << 31, 1 << 40, usize::MAX] {
        let huge = Matrix::new(&a, size, size).batch(3);
        let error = solve.cholesky_batched(huge, Triangle::Lower).submit().map(drop).unwrap_err().to_string();
        assert!(error.contains("`a` has 12 elements and must have "), "{error}");
        assert!(!error.contains("apart"), "{error}");
        let error = blas.matmul(huge, huge, huge).submit().map(drop).unwrap_err().to_string();
        assert!(error.contains("` has 2^59 elements or more") && !error.contains("apart"), "{error}");
    }
    // A stride that was given is told.
    let given = Matrix::new(&a, 2, 2).batch(3).stride(3);
    told(
        solve.cholesky_batched(given, Triangle::Lower).submit(),
        "that are 3 elements apart and reach over 4",
    );
}

#[test]
fn convolutions_blame_the_tensor_or_the_setting() {
    let gpu = DeviceRuntime::simulated(1).unwrap();
    let dnn = Dnn::new(&gpu);
    let [x, w, y] = [(); 3].map(|()| gpu.zeros::<f32>(64).unwrap());
    let tensor = |buffer, dimensions| Tensor::new(buffer, dimensions);
    let call = |x_dimensions, w_dimensions, y_dimensions| {
        dnn.convolution(tensor(&x, x_dimensions), tensor(&w, w_dimensions), tensor(&y, y_dimensions))
    };
    let usual = || call([1, 2, 4, 4], [2, 2, 2, 2], [1, 2, 3, 3]);
    for sizes in [[1, 2, 0, 4], [1, 2, 4, 0]] {
        let [_, _, height, width] = sizes;
        let wanted = format!(
            "dnn.convolution: `x` is 1 x 2 x {height} x {width}; give images a height and a width of 1 or more"
        );
        told(call(sizes, [2, 2, 2, 2], [1, 2, 3, 3]).submit(), &wanted);
    }
    told(
        call([1, 2, 4, 4], [2, 2, 0, 2], [1, 2, 3, 3]).submit(),
        "dnn.convolution: `w` is 2 x 2 x 0 x 2; give filters a height and a width of 1 or more",
    );
    told(usual().groups(0).submit(), "dnn.convolution: `groups` is 0; use 1 or more");
    told(usual().dilation([0, 1]).submit(), "dnn.convolution: `dilation` is 0x1; use 1 or more");
    told(usual().stride([1, 0]).submit(), "dnn.convolution: `stride` is 1x0; use 1 or more");
    let far = usual().dilation([4, 1]).submit();
    told(far, "a filter of 2x2 with a dilation of 4x1 in an image of 4x4 with a padding of 0x0");
    told(usual().dilation([4, 1]).submit(), "use a smaller filter, less dilation, or more padding");
    let back = dnn.convolution_backward_data(
        tensor(&y, [1, 2, 3, 3]),
        tensor(&w, [2, 2, 2, 2]),
        tensor(&x, [1, 2, 0, 4]),
    );
    told(back.submit(), "dnn.convolution_backward_data: `dx` is 1 x 2 x 0 x 4; give images");
}

#[test]
fn operands_of_other_lengths_are_told_with_both_names() {
    let gpu = DeviceRuntime::simulated(1).unwrap();
    let (blas, elements, prims) = (Blas::new(&gpu), Elementwise::new(&gpu), Primitives::new(&gpu));
    let (x, y) = (gpu.zeros::<f32>(3).unwrap(), gpu.zeros::<f32>(4).unwrap());
    let (z, one) = (gpu.zeros::<f32>(3).unwrap(), gpu.zeros::<f32>(1).unwrap());
    let vectors = "`x` has 3 elements and `y` has 4; use vectors of the same length";
    told(blas.dot(&x, &y, &one).submit(), &format!("blas.dot: {vectors}"));
    told(blas.axpy(1.0, &x, &y).submit(), &format!("blas.axpy: {vectors}"));
    told(blas.copy(&x, &y).submit(), &format!("blas.copy: {vectors}"));
    told(blas.swap(&x, &y).submit(), &format!("blas.swap: {vectors}"));
    let result = |name: &str, of: &str| format!("`{name}` has 4 elements and must have 3, as `{of}` has; ");
    told(elements.apply(ElementFunction::Tanh, &x, &y).submit(), &result("y", "x"));
    told(elements.affine(1.0, &x, 0.0, &y).submit(), &result("y", "x"));
    told(elements.cast(&x, &gpu.zeros::<f64>(4).unwrap()).submit(), &result("y", "x"));
    told(elements.combine(Combination::Add, &x, &z, &y).submit(), &result("c", "a"));
    told(elements.combine(Combination::Add, &x, &y, &z).submit(), &result("b", "a"));
    told(elements.apply_backward(ElementFunction::Tanh, &x, &y, &z).submit(), &result("dy", "x"));
    told(elements.apply_backward(ElementFunction::Tanh, &x, &z, &y).submit(), &result("dx", "x"));
    told(prims.sort(&x, &y).submit(), &result("output", "input"));
    told(prims.sort_by_key(&x, &z, &y, &one).submit(), &result("sorted_keys", "keys"));
    told(prims.sort_by_key(&x, &y, &z, &one).submit(), &result("values", "keys"));
    told(prims.scan_inclusive(&x, ScanOperator::Sum, &y).submit(), &result("output", "input"));
    let flags = gpu.zeros::<u8>(4).unwrap();
    let count = gpu.zeros::<u64>(1).unwrap();
    told(prims.select_flagged(&x, &flags, &z, &count).submit(), &result("flags", "input"));
}

#[test]
fn rows_of_networks_are_told_with_the_name_of_the_buffer() {
    let gpu = DeviceRuntime::simulated(1).unwrap();
    let dnn = Dnn::new(&gpu);
    let [x, y, z] = [(); 3].map(|()| gpu.zeros::<f32>(12).unwrap());
    let short = gpu.zeros::<f32>(8).unwrap();
    let three = gpu.zeros::<f32>(3).unwrap();
    let no_rows = |name: &str| {
        format!("`{name}` has 12 elements, which are no rows of 5; use a length of rows that divides")
    };
    told(dnn.softmax(&x, 5, &y).submit(), &format!("dnn.softmax: {}", no_rows("x")));
    told(dnn.softmax(&x, 0, &y).submit(), "dnn.softmax: `columns` is 0; use 1 or more");
    told(dnn.softmax(&x, 4, &short).submit(), "`y` has 8 elements and must have 12, as `x` has");
    told(dnn.softmax_backward(&x, &y, 5, &z).submit(), &no_rows("y"));
    told(
        dnn.softmax_backward(&x, &short, 4, &z).submit(),
        "`dy` has 8 elements and must have 12, as `y` has",
    );
    told(dnn.layer_norm(&x, 5, &y).submit(), &no_rows("x"));
    told(dnn.rms_norm(&x, 5, &y).submit(), &format!("dnn.rms_norm: {}", no_rows("x")));
    told(dnn.rms_norm_backward(&x, &y, &three, 5, &z).submit(), &no_rows("x"));
    let labels = gpu.zeros::<i32>(3).unwrap();
    told(dnn.cross_entropy(&x, 5, &labels, &three).submit(), &no_rows("logits"));
    told(
        dnn.cross_entropy(&x, 0, &labels, &three).submit(),
        "dnn.cross_entropy: `classes` is 0; use 1 or more",
    );
    told(dnn.cross_entropy_backward(&x, 5, &labels, &three, &y).submit(), &no_rows("logits"));
    told(dnn.embedding(&x, 5, &labels, &y).submit(), &no_rows("table"));
    told(
        dnn.embedding(&x, 4, &labels, &short).submit(),
        "`rows` has 8 elements and must have 12, a row of 4 for each of 3 `indices`",
    );
    told(
        dnn.embedding_backward(&labels, 4, &short, &z).submit(),
        "`row_gradients` has 8 elements and must have 12",
    );
    told(dnn.embedding_backward(&labels, 5, &y, &x).submit(), &no_rows("table_gradients"));
    told(dnn.embedding_backward(&labels, 0, &y, &x).submit(), "`columns` is 0; use 1 or more");
}

#[test]
fn a_leading_dimension_of_a_batch_is_told() {
    let gpu = DeviceRuntime::simulated(1).unwrap();
    let (solve, lower) = (Solve::new(&gpu), Triangle::Lower);
    let [a, b, c] = [(); 3].map(|()| gpu.zeros::<f32>(9).unwrap());
    let x = gpu.zeros::<f32>(3).unwrap();
    let square = |buffer| Matrix::new(buffer, 3, 3);
    let short = |buffer| square(buffer).leading(2);
    let told = |answer: Result<()>, call: &str, name: &str| {
        let wanted = format!(
            "{call}: `{name}` has a leading dimension of 2 for rows of 3 elements; use a leading dimension that holds a row"
        );
        told(answer, &wanted);
    };
    told(solve.qr_batched(short(&a), &x).submit().map(drop), "solve.qr_batched", "a");
    let applied = solve.apply_q_batched(Side::Left, square(&a), &x, short(&b)).submit().map(drop);
    told(applied, "solve.apply_q_batched", "c");
    let solved = solve.least_squares_batched(square(&a), short(&b)).submit().map(drop);
    told(solved, "solve.least_squares_batched", "b");
    let found = solve.eigenvalues_batched(short(&a), lower, &x).submit().map(drop);
    told(found, "solve.eigenvalues_batched", "a");
    let found = solve.eigenvectors_batched(short(&a), lower, &x).submit().map(drop);
    told(found, "solve.eigenvectors_batched", "a");
    let found = solve.singular_values_batched(short(&a), &x).submit().map(drop);
    told(found, "solve.singular_values_batched", "a");
    let found = solve.svd_batched(square(&a), &x, short(&b), square(&c)).submit().map(drop);
    told(found, "solve.svd_batched", "u");
}
