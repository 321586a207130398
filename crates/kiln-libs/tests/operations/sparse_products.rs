//! Products with sparse matrices, against sums over all elements in `f64`.

use kiln::DeviceRuntime;
use kiln_libs::Tolerance;
use kiln_libs::sparse::{CsrMatrix, Determinism, Real, Sparse, SparseIndex, SparseView};

use crate::exact::Exact;
use crate::numbers::{TestNumber, close, made_up};
use crate::rig::everywhere_and_in_workers;
use crate::stored::Stored;

/// A matrix of which about one element in four is not zero, with rows of none and one row of all.
pub(crate) fn sparse_numbers<T: TestNumber>(seed: u64, rows: usize, columns: usize) -> Vec<T> {
    let values = made_up::<T>(seed, rows * columns);
    let is_kept = |at: usize| match at / columns {
        row if row == rows / 2 => true,
        row if row % 5 == 3 => false,
        row => (row * 31 + at % columns * 17 + seed as usize).is_multiple_of(4),
    };
    let zero = T::from_number(0.0);
    values.into_iter().enumerate().map(|(at, value)| if is_kept(at) { value } else { zero }).collect()
}

pub(crate) fn dense_of<T: TestNumber>(values: &[T], rows: usize, columns: usize) -> Exact {
    Exact::new(rows, columns, |row, column| values[row * columns + column].number())
}

pub(crate) fn absolute(a: &Exact) -> Exact {
    Exact::new(a.rows, a.columns, |row, column| a.at(row, column).abs())
}

/// The ways to multiply with a matrix: as it is, in both orders, and its transpose.
const WAYS: [(bool, Determinism); 3] =
    [(false, Determinism::Any), (false, Determinism::RunToRun), (true, Determinism::Any)];

fn vectors<T: TestNumber + Real, I: SparseIndex>(gpu: &DeviceRuntime, rows: usize, columns: usize) {
    let sparse = Sparse::new(gpu);
    let values = sparse_numbers::<T>(1, rows, columns);
    let a: CsrMatrix<T, I> = CsrMatrix::from_dense(gpu, (rows, columns), &values).unwrap();
    assert_eq!(a.nonzeros(), values.iter().filter(|value| value.number() != 0.0).count());
    for (transposed, order) in WAYS {
        let view = if transposed { a.transposed() } else { SparseView::from(&a) };
        let dense = dense_of(&values, rows, columns);
        let dense = if transposed { dense.transposed() } else { dense };
        let (x, y) = (made_up::<T>(2, dense.columns), made_up::<T>(3, dense.rows));
        let input = gpu.upload(&x).unwrap();
        for beta in [None, Some(-0.5)] {
            let result = gpu.upload(&y).unwrap();
            let call = sparse.spmv(order, 1.5, view, &input, beta, &result);
            let tolerance = Tolerance::of(&call.operation().unwrap());
            call.submit().unwrap();
            for (row, found) in result.download().unwrap().into_iter().enumerate() {
                let terms = || (0..dense.columns).map(|at| 1.5 * dense.at(row, at) * x[at].number());
                let added = beta.unwrap_or(0.0) * y[row].number();
                let magnitude = terms().map(f64::abs).sum::<f64>() + added.abs();
                let what = format!("{rows} x {columns} {transposed} {order} {beta:?}, row {row}");
                close(&what, &tolerance, found.number(), terms().sum::<f64>() + added, magnitude);
            }
        }
    }
}

#[test]
fn sparse_matrices_are_multiplied_with_vectors() {
    everywhere_and_in_workers("sparse_matrices_are_multiplied_with_vectors", |gpu| {
        for (rows, columns) in [(1, 1), (13, 9), (9, 30), (120, 77)] {
            vectors::<f32, i32>(gpu, rows, columns);
            vectors::<f64, i32>(gpu, rows, columns);
            vectors::<f32, i64>(gpu, rows, columns);
            vectors::<f64, i64>(gpu, rows, columns);
        }
    });
}

fn matrices<T: TestNumber + Real, I: SparseIndex>(gpu: &DeviceRuntime, by_columns: bool, gap: usize) {
    let sparse = Sparse::new(gpu);
    let (rows, columns, n) = (17, 11, 6);
    let values = sparse_numbers::<T>(4, rows, columns);
    let a: CsrMatrix<T, I> = CsrMatrix::from_dense(gpu, (rows, columns), &values).unwrap();
    for (transposed, order) in WAYS {
        let view = if transposed { a.transposed() } else { SparseView::from(&a) };
        let dense = dense_of(&values, rows, columns);
        let dense = if transposed { dense.transposed() } else { dense };
        // Lines begin at multiples of 16 bytes where equal bits are asked for.
        let gap_behind = |line: usize| match order {
            Determinism::RunToRun => (line + gap).next_multiple_of(4) - line,
            _ => gap,
        };
        let stored = |seed, rows: usize| {
            Stored::<T>::new(seed, (rows, n), by_columns, gap_behind(if by_columns { rows } else { n }), 1)
        };
        let (b, c) = (stored(5, dense.columns), stored(6, dense.rows));
        let input = b.upload(gpu);
        let product = dense.times(&Exact::of(&b));
        let size = absolute(&dense).times(&absolute(&Exact::of(&b)));
        for beta in [None, Some(2.0)] {
            let result = c.upload(gpu);
            let call = sparse.spmm(order, -1.0, view, b.matrix(&input, 1), beta, c.matrix(&result, 1));
            let tolerance = Tolerance::of(&call.operation().unwrap());
            call.submit().unwrap();
            let found = Exact::of(&c.downloaded(&result));
            for row in 0..dense.rows {
                for column in 0..n {
                    let added = beta.unwrap_or(0.0) * c.at(0, row, column);
                    let exact = added - product.at(row, column);
                    let what = format!("{by_columns} {gap} {transposed} {order} {beta:?}, {row} {column}");
                    let magnitude = size.at(row, column) + added.abs();
                    close(&what, &tolerance, found.at(row, column), exact, magnitude);
                }
            }
        }
    }
}

#[test]
fn sparse_matrices_are_multiplied_with_dense_ones() {
    everywhere_and_in_workers("sparse_matrices_are_multiplied_with_dense_ones", |gpu| {
        for (by_columns, gap) in [(false, 0), (false, 3), (true, 0), (true, 2)] {
            matrices::<f32, i32>(gpu, by_columns, gap);
            matrices::<f64, i32>(gpu, by_columns, gap);
            matrices::<f64, i64>(gpu, by_columns, gap);
        }
    });
}

#[test]
fn a_sparse_matrix_is_written_as_a_dense_one() {
    everywhere_and_in_workers("a_sparse_matrix_is_written_as_a_dense_one", |gpu| {
        let sparse = Sparse::new(gpu);
        let (rows, columns) = (12, 7);
        let values = sparse_numbers::<f32>(7, rows, columns);
        let a: CsrMatrix<f32> = CsrMatrix::from_dense(gpu, (rows, columns), &values).unwrap();
        for by_columns in [false, true] {
            let dense = Stored::<f32>::new(8, (rows, columns), by_columns, 2, 1);
            let result = dense.upload(gpu);
            sparse.to_dense(&a, dense.matrix(&result, 1)).submit().unwrap();
            let found = dense.downloaded(&result);
            for (at, value) in values.iter().enumerate() {
                assert_eq!(found.at(0, at / columns, at % columns), f64::from(*value), "{by_columns} {at}");
            }
        }
    });
}

#[test]
fn equal_sparse_products_give_equal_bits_on_every_stream() {
    everywhere_and_in_workers("equal_sparse_products_give_equal_bits_on_every_stream", |gpu| {
        let sparse = Sparse::new(gpu);
        let (rows, columns) = (200, 150);
        let values = sparse_numbers::<f32>(9, rows, columns);
        let a: CsrMatrix<f32> = CsrMatrix::from_dense(gpu, (rows, columns), &values).unwrap();
        let x = gpu.upload(&made_up::<f32>(10, columns)).unwrap();
        let streams: Vec<_> = (0..4).map(|_| gpu.stream().unwrap()).collect();
        let results: Vec<_> = (0..12).map(|_| gpu.allocate::<f32>(rows).unwrap()).collect();
        for (turn, result) in results.iter().enumerate() {
            let call = sparse.spmv(Determinism::RunToRun, 1.0, &a, &x, None, result);
            call.on(&streams[turn % 4]).submit().unwrap();
        }
        let first = results[0].download().unwrap();
        assert!(results.iter().all(|result| result.download().unwrap() == first));
    });
}

#[test]
fn a_sparse_product_is_replayed_in_a_graph() {
    everywhere_and_in_workers("a_sparse_product_is_replayed_in_a_graph", |gpu| {
        let sparse = Sparse::new(gpu);
        let a: CsrMatrix<f64> = CsrMatrix::from_triplets(gpu, (2, 2), &[(1, 0, 3.0), (0, 1, 2.0)]).unwrap();
        let (x, y) = (gpu.upload(&[1.0_f64, 10.0]).unwrap(), gpu.upload(&[0.0_f64; 2]).unwrap());
        let mut graph = gpu.graph();
        sparse.spmv(Determinism::RunToRun, 1.0, &a, &x, Some(1.0), &y).record(&mut graph).unwrap();
        let graph = graph.build().unwrap();
        for _ in 0..3 {
            graph.replay().unwrap();
        }
        assert_eq!(y.download().unwrap(), [60.0, 9.0]);
    });
}
