//! Sparse matrices in every format: products with them, and from each format to each other.

use kiln::DeviceRuntime;
use kiln_libs::Tolerance;
use kiln_libs::sparse::{
    CooMatrix, CscMatrix, CsrMatrix, Determinism, Matrix, Real, Sparse, SparseIndex, SparseView,
};

use crate::exact::Exact;
use crate::numbers::{TestNumber, close, made_up};
use crate::rig::everywhere_and_in_workers;
use crate::sparse_products::{absolute, dense_of, sparse_numbers};
use crate::stored::Stored;

/// One matrix in all formats.
struct Formats<T: Real, I: SparseIndex> {
    csr: CsrMatrix<T, I>,
    csc: CscMatrix<T, I>,
    coo: CooMatrix<T, I>,
}

impl<T: TestNumber + Real, I: SparseIndex> Formats<T, I> {
    fn upload(gpu: &DeviceRuntime, shape: (usize, usize), values: &[T]) -> Self {
        Self {
            csr: CsrMatrix::from_dense(gpu, shape, values).unwrap(),
            csc: CscMatrix::from_dense(gpu, shape, values).unwrap(),
            coo: CooMatrix::from_dense(gpu, shape, values).unwrap(),
        }
    }

    fn allocate(gpu: &DeviceRuntime, shape: (usize, usize), nonzeros: usize) -> Self {
        Self {
            csr: CsrMatrix::allocate(gpu, shape, nonzeros).unwrap(),
            csc: CscMatrix::allocate(gpu, shape, nonzeros).unwrap(),
            coo: CooMatrix::allocate(gpu, shape, nonzeros).unwrap(),
        }
    }

    fn views(&self) -> [(&'static str, SparseView<'_, T, I>); 3] {
        [("csr", (&self.csr).into()), ("csc", (&self.csc).into()), ("coo", (&self.coo).into())]
    }

    /// What the buffers hold, as rows, columns and values in the order of memory; the format first.
    fn downloaded(&self) -> [Vec<(usize, usize, f64)>; 3] {
        let place = |index: &I| index.to_place().unwrap() as usize;
        let numbers = |values: Vec<T>| values.into_iter().map(TestNumber::number).collect::<Vec<f64>>();
        let lines = |offsets: Vec<I>| -> Vec<usize> {
            let ends = offsets.windows(2).map(|ends| place(&ends[0])..place(&ends[1]));
            ends.enumerate().flat_map(|(line, range)| range.map(move |_| line)).collect()
        };
        let (csr, csc, coo) = (&self.csr, &self.csc, &self.coo);
        let of = |rows: Vec<usize>, columns: Vec<usize>, values: Vec<f64>| {
            assert_eq!((rows.len(), columns.len()), (values.len(), values.len()));
            rows.into_iter()
                .zip(columns)
                .zip(values)
                .map(|((row, column), value)| (row, column, value))
                .collect()
        };
        let places = |indices: Vec<I>| indices.iter().map(place).collect::<Vec<usize>>();
        [
            of(
                lines(csr.offsets().download().unwrap()),
                places(csr.indices().download().unwrap()),
                numbers(csr.values().download().unwrap()),
            ),
            of(
                places(csc.indices().download().unwrap()),
                lines(csc.offsets().download().unwrap()),
                numbers(csc.values().download().unwrap()),
            ),
            of(
                places(coo.row_indices().download().unwrap()),
                places(coo.column_indices().download().unwrap()),
                numbers(coo.values().download().unwrap()),
            ),
        ]
    }
}

/// The elements of a dense matrix that are not zero, in the order that each format has them in.
fn wanted<T: TestNumber>(values: &[T], (rows, columns): (usize, usize)) -> [Vec<(usize, usize, f64)>; 3] {
    let at = |row: usize, column: usize| (row, column, values[row * columns + column].number());
    let by_rows = || (0..rows).flat_map(|row| (0..columns).map(move |column| at(row, column)));
    let by_columns = || (0..columns).flat_map(|column| (0..rows).map(move |row| at(row, column)));
    let kept = |element: &(usize, usize, f64)| element.2 != 0.0;
    [by_rows().filter(kept).collect(), by_columns().filter(kept).collect(), by_rows().filter(kept).collect()]
}

fn conversions<T: TestNumber + Real, I: SparseIndex>(gpu: &DeviceRuntime, shape: (usize, usize)) {
    let sparse = Sparse::new(gpu);
    let values = sparse_numbers::<T>(21, shape.0, shape.1);
    let from = Formats::<T, I>::upload(gpu, shape, &values);
    let wanted = wanted(&values, shape);
    assert_eq!(from.downloaded(), wanted, "uploaded");
    for (name, view) in from.views() {
        let to = Formats::allocate(gpu, shape, from.csr.nonzeros());
        for (_, target) in to.views() {
            sparse.convert(view, target).submit().unwrap();
        }
        assert_eq!(to.downloaded(), wanted, "from {name}");
        // The transpose of a matrix is the matrix whose transpose it is.
        let turned = Formats::allocate(gpu, (shape.1, shape.0), from.csr.nonzeros());
        for (_, target) in turned.views() {
            sparse.convert(view.transposed(), target).submit().unwrap();
        }
        let [csr, csc, coo] = turned.downloaded();
        let back = |elements: Vec<(usize, usize, f64)>| -> Vec<_> {
            elements.into_iter().map(|(row, column, value)| (column, row, value)).collect()
        };
        assert_eq!(
            [back(csc), back(csr.clone()), back(coo)],
            [wanted[0].clone(), wanted[1].clone(), wanted[1].clone()],
            "the transpose of {name}"
        );
        assert_eq!(back(csr), wanted[1]);
    }
}

#[test]
fn every_format_is_converted_into_every_other() {
    everywhere_and_in_workers("every_format_is_converted_into_every_other", |gpu| {
        for shape in [(1, 1), (13, 9), (40, 300)] {
            conversions::<f32, i32>(gpu, shape);
            conversions::<f64, i64>(gpu, shape);
        }
        conversions::<f64, i32>(gpu, (7, 12));
        conversions::<f32, i64>(gpu, (7, 12));
    });
}

#[test]
fn coordinates_in_any_order_are_sorted_on_the_device() {
    everywhere_and_in_workers("coordinates_in_any_order_are_sorted_on_the_device", |gpu| {
        let (sparse, shape) = (Sparse::new(gpu), (23, 40));
        let values = sparse_numbers::<f32>(30, shape.0, shape.1);
        let sorted = Formats::<f32, i32>::upload(gpu, shape, &values);
        let mut elements = wanted(&values, shape)[0].clone();
        // Backwards, and every third one first.
        elements.reverse();
        elements.sort_by_key(|(row, column, _)| (row * 7 + column) % 3);
        let indices = |place: fn(&(usize, usize, f64)) -> usize| -> Vec<i32> {
            elements.iter().map(|element| place(element) as i32).collect()
        };
        let numbers: Vec<f32> = elements.iter().map(|(.., value)| *value as f32).collect();
        let buffers = [indices(|(row, ..)| *row), indices(|(_, column, _)| *column)]
            .map(|list| gpu.upload(&list).unwrap());
        let [rows, columns] = buffers;
        let from = CooMatrix::from_buffers(shape, rows, columns, gpu.upload(&numbers).unwrap()).unwrap();
        assert!(sparse.check_indices(&from).is_err(), "not sorted yet");
        let to = CooMatrix::allocate(gpu, shape, from.nonzeros()).unwrap();
        sparse.sort_coordinates(&from, &to).submit().unwrap();
        sparse.check_indices(&to).unwrap();
        let made = Formats { csr: sorted.csr, csc: sorted.csc, coo: to };
        assert_eq!(made.downloaded()[2], wanted(&values, shape)[2]);
        let empty = CooMatrix::<f32>::allocate(gpu, (3, 2), 0).unwrap();
        sparse.sort_coordinates(&empty, &CooMatrix::allocate(gpu, (3, 2), 0).unwrap()).submit().unwrap();
    });
}

#[test]
fn a_matrix_without_elements_is_converted() {
    everywhere_and_in_workers("a_matrix_without_elements_is_converted", |gpu| {
        let sparse = Sparse::new(gpu);
        let empty = CooMatrix::<f32>::from_triplets(gpu, (3, 2), &[]).unwrap();
        let (rows, columns) =
            (CsrMatrix::allocate(gpu, (3, 2), 0).unwrap(), CscMatrix::allocate(gpu, (3, 2), 0).unwrap());
        sparse.convert(&empty, &rows).submit().unwrap();
        sparse.convert(&rows, &columns).submit().unwrap();
        sparse.convert(&columns, &CooMatrix::allocate(gpu, (3, 2), 0).unwrap()).submit().unwrap();
        assert_eq!(rows.offsets().download().unwrap(), [0; 4]);
        assert_eq!(columns.offsets().download().unwrap(), [0; 3]);
    });
}

fn from_dense<T: TestNumber + Real, I: SparseIndex>(
    gpu: &DeviceRuntime,
    shape: (usize, usize),
    by_columns: bool,
) {
    let sparse = Sparse::new(gpu);
    let values = sparse_numbers::<T>(22, shape.0, shape.1);
    let exact = dense_of(&values, shape.0, shape.1);
    let stored = Stored::<T>::new(23, shape, by_columns, 3, 1).filled(&exact);
    let buffer = stored.upload(gpu);
    let dense = stored.matrix(&buffer, 1);
    let count = |dense: Matrix<'_, T>, lines: usize| {
        let offsets = gpu.allocate::<I>(lines + 1).unwrap();
        sparse.count_nonzeros(dense, &offsets).submit().unwrap();
        let nonzeros = offsets.view(lines..).unwrap().download().unwrap()[0].to_place().unwrap() as usize;
        (offsets, gpu.allocate::<I>(nonzeros).unwrap(), gpu.allocate::<T>(nonzeros).unwrap())
    };
    let (offsets, indices, elements) = count(dense, shape.0);
    let csr = CsrMatrix::from_buffers(shape, offsets, indices, elements).unwrap();
    let (offsets, indices, elements) = count(dense.transposed(), shape.1);
    let csc = CscMatrix::from_buffers(shape, offsets, indices, elements).unwrap();
    sparse.copy_nonzeros(dense, &csr).submit().unwrap();
    sparse.copy_nonzeros(dense, &csc).submit().unwrap();
    let coo = CooMatrix::allocate(gpu, shape, csr.nonzeros()).unwrap();
    sparse.convert(&csr, &coo).submit().unwrap();
    let made = Formats { csr, csc, coo };
    assert_eq!(made.downloaded(), wanted(&values, shape), "{shape:?} {by_columns}");
    for (name, view) in made.views() {
        let result = Stored::<T>::new(24, shape, !by_columns, 2, 1);
        let buffer = result.upload(gpu);
        sparse.to_dense(view, result.matrix(&buffer, 1)).submit().unwrap();
        let found = Exact::of(&result.downloaded(&buffer));
        assert_eq!(found.minus(&exact).norm(), 0.0, "{name}");
    }
}

#[test]
fn a_dense_matrix_is_made_sparse_on_the_device_and_back() {
    everywhere_and_in_workers("a_dense_matrix_is_made_sparse_on_the_device_and_back", |gpu| {
        for by_columns in [false, true] {
            for shape in [(1, 1), (9, 40), (70, 33)] {
                from_dense::<f32, i32>(gpu, shape, by_columns);
                from_dense::<f64, i64>(gpu, shape, by_columns);
            }
        }
    });
}

/// The orders that a product with a view can have: equal bits are for rows that are not transposed.
fn orders(name: &str, transposed: bool) -> &'static [Determinism] {
    match (name == "csc") == transposed {
        true => &[Determinism::Any, Determinism::RunToRun],
        false => &[Determinism::Any],
    }
}

fn products<T: TestNumber + Real, I: SparseIndex>(gpu: &DeviceRuntime) {
    let (sparse, shape, n) = (Sparse::new(gpu), (31, 18), 4);
    let values = sparse_numbers::<T>(25, shape.0, shape.1);
    let all = Formats::<T, I>::upload(gpu, shape, &values);
    for (name, view) in all.views() {
        for transposed in [false, true] {
            let dense = dense_of(&values, shape.0, shape.1);
            let (dense, view) =
                if transposed { (dense.transposed(), view.transposed()) } else { (dense, view) };
            let x = Stored::<T>::new(26, (dense.columns, n), false, 0, 1);
            let exact = dense.times(&Exact::of(&x));
            let size = absolute(&dense).times(&absolute(&Exact::of(&x)));
            let input = x.upload(gpu);
            for order in orders(name, transposed) {
                let result = gpu.allocate::<T>(dense.rows * n).unwrap();
                let call = sparse.spmm(
                    *order,
                    1.0,
                    view,
                    x.matrix(&input, 1),
                    None,
                    Matrix::new(&result, dense.rows, n),
                );
                let tolerance = Tolerance::of(&call.operation().unwrap());
                call.submit().unwrap();
                for (at, found) in result.download().unwrap().into_iter().enumerate() {
                    let what = format!("spmm {name} {transposed} {order} {at}");
                    let (row, column) = (at / n, at % n);
                    close(&what, &tolerance, found.number(), exact.at(row, column), size.at(row, column));
                }
                let vector: Vec<T> = (0..dense.columns).map(|row| T::from_number(x.at(0, row, 0))).collect();
                let (vector, result) =
                    (gpu.upload(&vector).unwrap(), gpu.upload(&made_up::<T>(27, dense.rows)).unwrap());
                let before = result.download().unwrap();
                let call = sparse.spmv(*order, 2.0, view, &vector, Some(-1.0), &result);
                let tolerance = Tolerance::of(&call.operation().unwrap());
                call.submit().unwrap();
                for (row, found) in result.download().unwrap().into_iter().enumerate() {
                    let (added, what) =
                        (-before[row].number(), format!("spmv {name} {transposed} {order} {row}"));
                    let magnitude = 2.0 * size.at(row, 0) + added.abs();
                    close(&what, &tolerance, found.number(), 2.0 * exact.at(row, 0) + added, magnitude);
                }
            }
        }
    }
}

#[test]
fn matrices_of_every_format_are_multiplied() {
    everywhere_and_in_workers("matrices_of_every_format_are_multiplied", |gpu| {
        products::<f32, i32>(gpu);
        products::<f64, i32>(gpu);
        products::<f32, i64>(gpu);
        products::<f64, i64>(gpu);
    });
}

#[test]
fn equal_products_with_coordinates_give_equal_bits_on_every_stream() {
    everywhere_and_in_workers("equal_products_with_coordinates_give_equal_bits_on_every_stream", |gpu| {
        let (sparse, shape) = (Sparse::new(gpu), (200, 150));
        let values = sparse_numbers::<f32>(28, shape.0, shape.1);
        let a = CooMatrix::<f32>::from_dense(gpu, shape, &values).unwrap();
        let x = gpu.upload(&made_up::<f32>(29, shape.1)).unwrap();
        let streams: Vec<_> = (0..4).map(|_| gpu.stream().unwrap()).collect();
        let results: Vec<_> = (0..12).map(|_| gpu.allocate::<f32>(shape.0).unwrap()).collect();
        for (turn, result) in results.iter().enumerate() {
            let call = sparse.spmv(Determinism::RunToRun, 1.0, &a, &x, None, result);
            call.on(&streams[turn % 4]).submit().unwrap();
        }
        let first = results[0].download().unwrap();
        assert!(results.iter().all(|result| result.download().unwrap() == first));
    });
}
