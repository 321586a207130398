//! Systems of equations with sparse triangular matrices, against their residuals in `f64`.

use kiln::DeviceRuntime;
use kiln_libs::sparse::{
    CooMatrix, CscMatrix, CsrMatrix, Diagonal, Matrix, Real, Sparse, SparseIndex, SparseView, Triangle,
};

use crate::exact::{Exact, small};
use crate::numbers::TestNumber;
use crate::rig::everywhere_and_in_workers;
use crate::sparse_products::{absolute, sparse_numbers};
use crate::stored::Stored;

/// A matrix with elements on both sides of its diagonal, which is at least 4.
fn square<T: TestNumber>(seed: u64, order: usize) -> Vec<T> {
    let mut values = sparse_numbers::<T>(seed, order, order);
    for at in 0..order {
        let value = &mut values[at * order + at];
        *value = T::from_number(4.0 + value.number().abs());
    }
    values
}

/// The triangle that counts.
fn triangle_of<T: TestNumber>(
    values: &[T],
    order: usize,
    triangle: Triangle,
    diagonal: Diagonal,
    transposed: bool,
) -> Exact {
    Exact::new(order, order, |row, column| {
        let is_inside = match triangle {
            Triangle::Lower => column < row,
            Triangle::Upper => column > row,
        };
        let at = if transposed { column * order + row } else { row * order + column };
        match (row == column, diagonal) {
            (true, Diagonal::Unit) => 1.0,
            (true, Diagonal::Stored) => values[at].number(),
            (false, _) if is_inside => values[at].number(),
            _ => 0.0,
        }
    })
}

/// The largest residual of an element, for its magnitude.
#[track_caller]
fn check(what: &str, a: &Exact, x: &Exact, b: &Exact, unit: f64) {
    let residual = a.times(x).minus(b);
    let size = absolute(a).times(&absolute(x));
    for row in 0..b.rows {
        for column in 0..b.columns {
            let magnitude = size.at(row, column) + b.at(row, column).abs();
            let bound = (a.rows as f64 + 3.0) * unit;
            small(&format!("{what}, {row} {column}"), residual.at(row, column).abs(), bound, magnitude);
        }
    }
}

fn systems<T: TestNumber + Real, I: SparseIndex>(
    gpu: &DeviceRuntime,
    order: usize,
    sides: usize,
    by_columns: bool,
) {
    let sparse = Sparse::new(gpu);
    let values = square::<T>(31, order);
    let shape = (order, order);
    let csr = CsrMatrix::<T, I>::from_dense(gpu, shape, &values).unwrap();
    let csc = CscMatrix::<T, I>::from_dense(gpu, shape, &values).unwrap();
    let coo = CooMatrix::<T, I>::from_dense(gpu, shape, &values).unwrap();
    let views: [(&str, SparseView<'_, T, I>); 3] =
        [("csr", (&csr).into()), ("csc", (&csc).into()), ("coo", (&coo).into())];
    let unit = T::TYPE.unit_roundoff();
    for (name, view) in views {
        for transposed in [false, true] {
            let view = if transposed { view.transposed() } else { view };
            for triangle in [Triangle::Lower, Triangle::Upper] {
                for diagonal in [Diagonal::Stored, Diagonal::Unit] {
                    let alpha = 0.5;
                    let a = triangle_of(&values, order, triangle, diagonal, transposed);
                    let b = Stored::<T>::new(32, (order, sides), by_columns, 2, 1);
                    let x = Stored::<T>::new(33, (order, sides), !by_columns, 1, 1);
                    let (right, left) = (b.upload(gpu), x.upload(gpu));
                    let what = format!("{name} {transposed} {triangle} {diagonal}");
                    let call = sparse.triangular_solve(
                        triangle,
                        diagonal,
                        alpha,
                        view,
                        b.matrix(&right, 1),
                        x.matrix(&left, 1),
                    );
                    call.submit().unwrap().wait().unwrap();
                    let found = Exact::of(&x.downloaded(&left));
                    let scaled = Exact::new(order, sides, |row, column| alpha * b.at(0, row, column));
                    check(&what, &a, &found, &scaled, unit);
                    // In place, the same bits.
                    let place = b.matrix(&right, 1);
                    sparse
                        .triangular_solve(triangle, diagonal, alpha, view, place, place)
                        .submit()
                        .unwrap()
                        .wait()
                        .unwrap();
                    let again = Exact::of(&b.downloaded(&right));
                    assert_eq!(again.minus(&found).norm(), 0.0, "{what} in place");
                }
            }
        }
    }
}

#[test]
fn sparse_triangular_systems_are_solved() {
    everywhere_and_in_workers("sparse_triangular_systems_are_solved", |gpu| {
        systems::<f32, i32>(gpu, 1, 1, false);
        systems::<f64, i32>(gpu, 19, 1, true);
        systems::<f32, i64>(gpu, 12, 3, false);
        systems::<f64, i64>(gpu, 10, 20, true);
    });
}

#[test]
fn a_unit_diagonal_is_not_read() {
    everywhere_and_in_workers("a_unit_diagonal_is_not_read", |gpu| {
        let sparse = Sparse::new(gpu);
        // The diagonal is not stored, or stored with other numbers.
        let a = CsrMatrix::<f64>::from_triplets(
            gpu,
            (3, 3),
            &[(1, 0, 2.0), (2, 0, 1.0), (2, 1, 3.0), (2, 2, 9.0), (0, 2, 7.0)],
        )
        .unwrap();
        let b = gpu.upload(&[1.0_f64, 4.0, 10.0]).unwrap();
        let x = Matrix::new(&b, 3, 1);
        sparse
            .triangular_solve(Triangle::Lower, Diagonal::Unit, 1.0, &a, x, x)
            .submit()
            .unwrap()
            .wait()
            .unwrap();
        // 1, 4 - 2, 10 - 1 - 3 * 2
        assert_eq!(b.download().unwrap(), [1.0, 2.0, 3.0]);
    });
}

#[test]
fn a_long_chain_of_rows_is_solved() {
    everywhere_and_in_workers("a_long_chain_of_rows_is_solved", |gpu| {
        let (sparse, order) = (Sparse::new(gpu), 200_usize);
        // x[i] - x[i - 1] = 1: each row waits for the one before.
        let chain = (0..order).flat_map(|row| {
            [(row, row, 1.0_f32), (row, row.saturating_sub(1), if row == 0 { 0.0 } else { -1.0 })]
        });
        let a = CsrMatrix::<f32>::from_triplets(gpu, (order, order), &chain.collect::<Vec<_>>()).unwrap();
        let (b, x) = (gpu.upload(&vec![1.0_f32; order]).unwrap(), gpu.allocate::<f32>(order).unwrap());
        let call = sparse.triangular_solve(
            Triangle::Lower,
            Diagonal::Stored,
            1.0,
            &a,
            Matrix::new(&b, order, 1),
            Matrix::new(&x, order, 1),
        );
        call.submit().unwrap().wait().unwrap();
        assert!(x.download().unwrap().iter().enumerate().all(|(at, found)| *found == at as f32 + 1.0));
    });
}

#[test]
fn a_system_is_replayed_in_a_graph_and_tells_of_the_last_replay() {
    everywhere_and_in_workers("a_system_is_replayed_in_a_graph_and_tells_of_the_last_replay", |gpu| {
        let sparse = Sparse::new(gpu);
        let a = CscMatrix::<f64>::from_dense(gpu, (2, 2), &[2.0, 1.0, 0.0, 4.0]).unwrap();
        let b = gpu.upload(&[8.0_f64, 16.0]).unwrap();
        let x = Matrix::new(&b, 2, 1);
        let mut graph = gpu.graph();
        let call = sparse.triangular_solve(Triangle::Upper, Diagonal::Stored, 1.0, &a, x, x);
        let (_, info) = call.record(&mut graph).unwrap();
        let graph = graph.build().unwrap();
        graph.replay().unwrap();
        info.check().unwrap();
        assert_eq!(b.download().unwrap(), [2.0, 4.0]);
        graph.replay().unwrap();
        assert_eq!(b.download().unwrap(), [0.5, 1.0]);
        a.values().upload(&[2.0, 1.0, 0.0]).unwrap();
        graph.replay().unwrap();
        let text = info.check().unwrap_err().to_string();
        assert_eq!(
            text,
            "sparse.triangular_solve: the triangular matrix has a zero, or no element, on its diagonal in row 1; store a number that is not zero there, or use `Diagonal::Unit` where the diagonal is ones"
        );
    });
}
