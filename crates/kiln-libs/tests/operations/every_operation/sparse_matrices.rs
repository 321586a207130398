//! Sparse matrices.

use kiln::DeviceRuntime;
use kiln_libs::blas::{Diagonal, Matrix, Triangle};
use kiln_libs::sparse::{CooMatrix, CscMatrix, CsrMatrix, Determinism, Sparse};

use super::{A, Row, close, down, exact, library, out, square, up};

/// (0, 2; 1, 3) with a number in each row.
fn sparse_of(gpu: &DeviceRuntime) -> CsrMatrix<f32> {
    CsrMatrix::from_dense(gpu, (2, 2), &[0.0, 2.0, 1.0, 3.0]).unwrap()
}

pub(super) fn sparse() -> Vec<Row> {
    [products(), structures()].into_iter().flatten().collect()
}

fn products() -> Vec<Row> {
    vec![
        Row {
            call: "sparse.spmv",
            run: |gpu| {
                let (a, x, y, sparse) =
                    (sparse_of(gpu), up(gpu, &[1.0_f32, 10.0]), out(gpu, 2), Sparse::new(gpu));
                library!(sparse.spmv(Determinism::Any, 1.0, &a, &x, None, &y), y, [20.0, 31.0])
            },
        },
        Row {
            call: "sparse.spmm",
            run: |gpu| {
                let (a, b, c, sparse) = (sparse_of(gpu), up(gpu, &A), out(gpu, 4), Sparse::new(gpu));
                library!(
                    sparse.spmm(Determinism::Any, 1.0, &a, square(&b), None, square(&c)),
                    c,
                    [6.0, 8.0, 10.0, 14.0]
                )
            },
        },
        Row {
            call: "sparse.to_dense",
            run: |gpu| {
                let (a, c) = (sparse_of(gpu), out(gpu, 4));
                drop(Sparse::new(gpu).to_dense(&a, square(&c)).submit().unwrap());
                exact(&down(&c), &[0.0, 2.0, 1.0, 3.0])
            },
        },
        Row {
            call: "sparse.convert",
            run: |gpu| {
                let (a, to) = (sparse_of(gpu), CscMatrix::<f32>::allocate(gpu, (2, 2), 3).unwrap());
                drop(Sparse::new(gpu).convert(&a, &to).submit().unwrap());
                exact(&down(to.values()), &[1.0, 2.0, 3.0])
            },
        },
        Row {
            call: "sparse.sort_coordinates",
            run: |gpu| {
                let (rows, columns) = (up(gpu, &[1_i32, 0, 1]), up(gpu, &[1_i32, 1, 0]));
                let from =
                    CooMatrix::from_buffers((2, 2), rows, columns, up(gpu, &[3.0_f32, 2.0, 1.0])).unwrap();
                let to = CooMatrix::<f32>::allocate(gpu, (2, 2), 3).unwrap();
                drop(Sparse::new(gpu).sort_coordinates(&from, &to).submit().unwrap());
                exact(&down(to.values()), &[2.0, 1.0, 3.0])
            },
        },
        Row {
            call: "sparse.count_nonzeros",
            run: |gpu| {
                let (dense, offsets) = (up(gpu, &[0.0_f32, 2.0, 1.0, 3.0]), up(gpu, &[9_i32; 3]));
                drop(Sparse::new(gpu).count_nonzeros(square(&dense), &offsets).submit().unwrap());
                let found: Vec<f64> = offsets.download().unwrap().into_iter().map(f64::from).collect();
                exact(&found, &[0.0, 1.0, 3.0])
            },
        },
    ]
}

fn structures() -> Vec<Row> {
    vec![
        Row {
            call: "sparse.copy_nonzeros",
            run: |gpu| {
                let dense = up(gpu, &[0.0_f32, 2.0, 1.0, 3.0]);
                let (offsets, indices) = (up(gpu, &[0_i32, 1, 3]), up(gpu, &[0_i32; 3]));
                let to = CsrMatrix::from_buffers((2, 2), offsets, indices, out(gpu, 3)).unwrap();
                drop(Sparse::new(gpu).copy_nonzeros(square(&dense), &to).submit().unwrap());
                exact(&down(to.values()), &[2.0, 1.0, 3.0])
            },
        },
        Row {
            call: "sparse.triangular_solve",
            run: |gpu| {
                let a: CsrMatrix<f32> = CsrMatrix::from_dense(gpu, (2, 2), &[2.0, 0.0, 1.0, 4.0]).unwrap();
                let b = up(gpu, &[2.0_f32, 9.0]);
                let x = Matrix::new(&b, 2, 1);
                let kind = (Triangle::Lower, Diagonal::Stored);
                Sparse::new(gpu)
                    .triangular_solve(kind.0, kind.1, 1.0, &a, x, x)
                    .submit()
                    .unwrap()
                    .wait()
                    .unwrap();
                exact(&down(&b), &[1.0, 2.0])
            },
        },
        Row {
            call: "sparse.product_structure",
            run: |gpu| {
                let a = sparse_of(gpu);
                let c = Sparse::new(gpu).product_structure(&a, &a).unwrap();
                let found: Vec<f64> = c.offsets().download().unwrap().into_iter().map(f64::from).collect();
                exact(&found, &[0.0, 2.0, 4.0])
            },
        },
        Row {
            call: "sparse.spgemm",
            run: |gpu| {
                let (a, sparse) = (sparse_of(gpu), Sparse::new(gpu));
                let c = sparse.product_structure(&a, &a).unwrap();
                drop(sparse.spgemm(1.0, &a, &a, None, &c).submit().unwrap());
                exact(&down(c.values()), &[2.0, 6.0, 3.0, 11.0])
            },
        },
    ]
}
