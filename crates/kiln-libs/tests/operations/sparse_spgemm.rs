//! Products of sparse matrices, against sums over all elements in `f64`.

use kiln::DeviceRuntime;
use kiln_libs::sparse::{CsrMatrix, Real, Sparse, SparseIndex};

use crate::numbers::{TestNumber, made_up};
use crate::rig::everywhere_and_in_workers;
use crate::sparse_products::{absolute, dense_of, sparse_numbers};

/// Rows of a matrix: columns and values.
fn rows_of<T: TestNumber + Real, I: SparseIndex>(matrix: &CsrMatrix<T, I>) -> Vec<Vec<(usize, f64)>> {
    let place = |index: &I| index.to_place().unwrap() as usize;
    let offsets = matrix.offsets().download().unwrap();
    let (indices, values) = (matrix.indices().download().unwrap(), matrix.values().download().unwrap());
    let row = |ends: &[I]| {
        (place(&ends[0])..place(&ends[1])).map(|at| (place(&indices[at]), values[at].number())).collect()
    };
    offsets.windows(2).map(row).collect()
}

fn products<T: TestNumber + Real, I: SparseIndex>(gpu: &DeviceRuntime, (m, k, n): (usize, usize, usize)) {
    let sparse = Sparse::new(gpu);
    let (left, right) = (sparse_numbers::<T>(41, m, k), sparse_numbers::<T>(42, k, n));
    let a = CsrMatrix::<T, I>::from_dense(gpu, (m, k), &left).unwrap();
    let b = CsrMatrix::<T, I>::from_dense(gpu, (k, n), &right).unwrap();
    let (left, right) = (dense_of(&left, m, k), dense_of(&right, k, n));
    let (exact, size) = (left.times(&right), absolute(&left).times(&absolute(&right)));
    let c = sparse.product_structure(&a, &b).unwrap();
    assert_eq!(c.shape(), (m, n));
    let bound = (k as f64 + 3.0) * T::TYPE.unit_roundoff();
    let before = made_up::<T>(43, c.nonzeros());
    c.values().upload(&before).unwrap();
    let mut at = 0;
    for (alpha, beta) in [(1.0, None), (-2.0, Some(0.5))] {
        let added: Vec<f64> = match beta {
            Some(_) => c.values().download().unwrap().into_iter().map(TestNumber::number).collect(),
            None => vec![0.0; c.nonzeros()],
        };
        sparse.spgemm(alpha, &a, &b, beta, &c).submit().unwrap();
        let rows = rows_of(&c);
        at = 0;
        for (row, elements) in rows.iter().enumerate() {
            // The structure: every place with a term, once, in ascending order.
            let places: Vec<usize> = (0..n)
                .filter(|column| {
                    (0..k).any(|inner| left.at(row, inner) != 0.0 && right.at(inner, *column) != 0.0)
                })
                .collect();
            assert_eq!(elements.iter().map(|(column, _)| *column).collect::<Vec<_>>(), places, "row {row}");
            for (column, found) in elements {
                let added = beta.unwrap_or(0.0) * added[at];
                let wanted = alpha * exact.at(row, *column) + added;
                let magnitude = alpha.abs() * size.at(row, *column) + added.abs();
                assert!(
                    (found - wanted).abs() <= bound * magnitude,
                    "{row} {column}: {found} is not {wanted}"
                );
                at += 1;
            }
        }
    }
    assert_eq!(at, c.nonzeros());
}

#[test]
fn sparse_matrices_are_multiplied_with_each_other() {
    everywhere_and_in_workers("sparse_matrices_are_multiplied_with_each_other", |gpu| {
        for shape in [(1, 1, 1), (13, 9, 20), (40, 70, 45)] {
            products::<f32, i32>(gpu, shape);
            products::<f64, i64>(gpu, shape);
        }
        products::<f64, i32>(gpu, (9, 9, 9));
        products::<f32, i64>(gpu, (9, 9, 9));
    });
}

#[test]
fn a_product_of_nothing_has_no_elements() {
    everywhere_and_in_workers("a_product_of_nothing_has_no_elements", |gpu| {
        let sparse = Sparse::new(gpu);
        let empty = CsrMatrix::<f32>::from_triplets(gpu, (3, 4), &[]).unwrap();
        let other = CsrMatrix::<f32>::from_dense(gpu, (4, 2), &[1.0; 8]).unwrap();
        let c = sparse.product_structure(&empty, &other).unwrap();
        assert_eq!((c.nonzeros(), c.offsets().download().unwrap()), (0, vec![0; 4]));
        sparse.spgemm(1.0, &empty, &other, None, &c).submit().unwrap();
        // No row of one meets a column of the other.
        let a = CsrMatrix::<f32>::from_triplets(gpu, (2, 2), &[(0, 0, 1.0), (1, 0, 1.0)]).unwrap();
        let b = CsrMatrix::<f32>::from_triplets(gpu, (2, 2), &[(1, 1, 1.0)]).unwrap();
        let c = sparse.product_structure(&a, &b).unwrap();
        assert_eq!((c.nonzeros(), c.offsets().download().unwrap()), (0, vec![0; 3]));
    });
}

#[test]
fn a_structure_serves_many_products_and_a_graph() {
    everywhere_and_in_workers("a_structure_serves_many_products_and_a_graph", |gpu| {
        let sparse = Sparse::new(gpu);
        let a = CsrMatrix::<f64>::from_dense(gpu, (2, 2), &[1.0, 2.0, 0.0, 3.0]).unwrap();
        let c = sparse.product_structure(&a, &a).unwrap();
        let mut graph = gpu.graph();
        sparse.spgemm(1.0, &a, &a, None, &c).record(&mut graph).unwrap();
        let graph = graph.build().unwrap();
        graph.replay().unwrap();
        assert_eq!(c.values().download().unwrap(), [1.0, 8.0, 9.0]);
        a.values().upload(&[2.0, 1.0, 1.0]).unwrap();
        graph.replay().unwrap();
        assert_eq!(c.values().download().unwrap(), [4.0, 3.0, 1.0]);
        // A mask: only what it stores is computed.
        let mask = CsrMatrix::<f64>::from_triplets(gpu, (2, 2), &[(0, 1, 0.0), (1, 0, 0.0)]).unwrap();
        sparse.spgemm(10.0, &a, &a, None, &mask).submit().unwrap();
        assert_eq!(mask.values().download().unwrap(), [30.0, 0.0]);
    });
}

#[test]
fn equal_sparse_sums_give_equal_bits() {
    everywhere_and_in_workers("equal_sparse_sums_give_equal_bits", |gpu| {
        let sparse = Sparse::new(gpu);
        let values = sparse_numbers::<f32>(44, 90, 90);
        let a = CsrMatrix::<f32>::from_dense(gpu, (90, 90), &values).unwrap();
        let c = sparse.product_structure(&a, &a).unwrap();
        let mut runs = (0..4).map(|_| {
            sparse.spgemm(0.3, &a, &a, None, &c).submit().unwrap();
            c.values().download().unwrap().into_iter().map(f32::to_bits).collect::<Vec<_>>()
        });
        let first = runs.next().unwrap();
        assert!(runs.all(|run| run == first));
    });
}
