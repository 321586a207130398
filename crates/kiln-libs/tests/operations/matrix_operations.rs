//! Sums and transposes of matrices, and products with symmetric and triangular ones, against sums in `f64`.

use kiln::{DeviceRuntime, GpuRef};
use kiln_libs::Tolerance;
use kiln_libs::blas::{Blas, Diagonal, Matrix, Real, Side, Triangle};

use crate::numbers::{TestNumber, close, made_up};
use crate::rig::everywhere_and_in_workers;

const SIDES: [Side; 2] = [Side::Left, Side::Right];
const TRIANGLES: [Triangle; 2] = [Triangle::Upper, Triangle::Lower];

/// Elements behind each row or column of a matrix that are not part of it.
const GAP: usize = 2;

/// A matrix with gaps, stored by rows or by columns.
struct Stored<T> {
    rows: usize,
    columns: usize,
    by_columns: bool,
    values: Vec<T>,
}

impl<T: TestNumber + Real> Stored<T> {
    fn new(seed: u64, (rows, columns): (usize, usize), by_columns: bool) -> Self {
        let lines = if by_columns { columns } else { rows };
        let len = lines * (if by_columns { rows } else { columns } + GAP);
        Self { rows, columns, by_columns, values: made_up(seed, len) }
    }

    fn place(&self, row: usize, column: usize) -> usize {
        match self.by_columns {
            true => column * (self.rows + GAP) + row,
            false => row * (self.columns + GAP) + column,
        }
    }

    fn at(&self, row: usize, column: usize) -> f64 {
        self.values[self.place(row, column)].number()
    }

    fn upload(&self, gpu: &DeviceRuntime) -> GpuRef<T> {
        gpu.upload(&self.values).unwrap()
    }

    fn matrix<'a>(&self, buffer: &'a GpuRef<T>) -> Matrix<'a, T> {
        match self.by_columns {
            true => Matrix::new(buffer, self.columns, self.rows).leading(self.rows + GAP).transposed(),
            false => Matrix::new(buffer, self.rows, self.columns).leading(self.columns + GAP),
        }
    }

    /// Compares a result with what each element must be and the magnitude of its terms; gaps stay as they were.
    fn check(
        &self,
        what: &str,
        bound: &Tolerance,
        found: &GpuRef<T>,
        exact: impl Fn(usize, usize) -> (f64, f64),
    ) {
        let found = found.download().unwrap();
        let mut is_part = vec![false; found.len()];
        for row in 0..self.rows {
            for column in 0..self.columns {
                let (value, magnitude) = exact(row, column);
                let place = self.place(row, column);
                is_part[place] = true;
                close(&format!("{what} {row} {column}"), bound, found[place].number(), value, magnitude);
            }
        }
        for (place, _) in is_part.iter().enumerate().filter(|(_, is_part)| !**is_part) {
            assert_eq!(found[place].number(), self.values[place].number(), "{what}: the gap at {place}");
        }
    }
}

/// A sum of terms, and of their magnitudes.
fn summed(terms: impl Iterator<Item = f64>) -> (f64, f64) {
    terms.fold((0.0, 0.0), |(sum, magnitude), term| (sum + term, magnitude + term.abs()))
}

fn layouts() -> impl Iterator<Item = [bool; 3]> {
    (0..8).map(|bits| [bits & 1 != 0, bits & 2 != 0, bits & 4 != 0])
}

fn sum<T: TestNumber + Real>(
    gpu: &DeviceRuntime,
    [a_columns, b_columns, c_columns]: [bool; 3],
    beta: Option<f64>,
) {
    let (shape, alpha) = ((5, 7), -1.5);
    let a = Stored::<T>::new(1, shape, a_columns);
    let b = Stored::<T>::new(2, shape, b_columns);
    let c = Stored::<T>::new(3, shape, c_columns);
    let (x, y, z) = (a.upload(gpu), b.upload(gpu), c.upload(gpu));
    let blas = Blas::new(gpu);
    let geam = blas.geam(alpha, a.matrix(&x), beta.map(|beta| (beta, b.matrix(&y))), c.matrix(&z));
    let bound = Tolerance::of(&geam.operation().unwrap());
    geam.submit().unwrap();
    c.check("geam", &bound, &z, |row, column| {
        summed([alpha * a.at(row, column), beta.unwrap_or(0.0) * b.at(row, column)].into_iter())
    });
}

#[test]
fn sums_of_matrices_in_every_layout() {
    everywhere_and_in_workers("sums_of_matrices_in_every_layout", |gpu| {
        for layout in layouts() {
            for beta in [None, Some(0.5)] {
                sum::<f32>(gpu, layout, beta);
                sum::<f64>(gpu, layout, beta);
            }
        }
    });
}

#[test]
fn a_transpose_is_a_copy_in_the_other_order() {
    everywhere_and_in_workers("a_transpose_is_a_copy_in_the_other_order", |gpu| {
        let blas = Blas::new(gpu);
        let a = gpu.upload(&[1.0_f64, 2.0, 3.0, 4.0, 5.0, 6.0]).unwrap();
        let c = gpu.allocate::<f64>(6).unwrap();
        blas.transpose(Matrix::new(&a, 2, 3), Matrix::new(&c, 3, 2)).submit().unwrap();
        assert_eq!(c.download().unwrap(), [1.0, 4.0, 2.0, 5.0, 3.0, 6.0]);
    });
}

fn belongs(triangle: Triangle, row: usize, column: usize) -> bool {
    match triangle {
        Triangle::Upper => column >= row,
        Triangle::Lower => row >= column,
    }
}

/// A square matrix of which one triangle counts, and the rest is NaN.
fn triangle_of<T: TestNumber + Real>(
    order: usize,
    triangle: Triangle,
    diagonal: Diagonal,
    by_columns: bool,
) -> Stored<T> {
    let mut a = Stored::<T>::new(4, (order, order), by_columns);
    for row in 0..order {
        for column in 0..order {
            let is_read = belongs(triangle, row, column) && (row != column || diagonal == Diagonal::Stored);
            if !is_read {
                let place = a.place(row, column);
                a.values[place] = T::from_number(f64::NAN);
            }
        }
    }
    a
}

/// The product of a square matrix, given by its elements, and `B` from one side.
fn product_terms<'a>(
    side: Side,
    (row, column): (usize, usize),
    order: usize,
    a: &'a impl Fn(usize, usize) -> f64,
    b: &'a impl Fn(usize, usize) -> f64,
) -> impl Iterator<Item = f64> + 'a {
    (0..order)
        .map(move |k| match side {
            Side::Left => (a(row, k), b(k, column)),
            Side::Right => (b(row, k), a(k, column)),
        })
        // What is 0 by definition meets no infinity.
        .map(|(one, other)| if one == 0.0 || other == 0.0 { 0.0 } else { one * other })
}

fn symmetric<T: TestNumber + Real>(
    gpu: &DeviceRuntime,
    (side, triangle): (Side, Triangle),
    [a_columns, b_columns]: [bool; 2],
    beta: Option<f64>,
) {
    let (shape, alpha) = ((4, 6), 0.75);
    let order = if side == Side::Left { 4 } else { 6 };
    let a = triangle_of::<T>(order, triangle, Diagonal::Stored, a_columns);
    let (b, c) = (Stored::<T>::new(5, shape, b_columns), Stored::<T>::new(6, shape, b_columns));
    let (x, y, z) = (a.upload(gpu), b.upload(gpu), c.upload(gpu));
    let blas = Blas::new(gpu);
    let symm = blas.symm(side, alpha, (a.matrix(&x), triangle), b.matrix(&y), beta, c.matrix(&z));
    let bound = Tolerance::of(&symm.operation().unwrap());
    symm.submit().unwrap();
    let entry = |row: usize, column: usize| match belongs(triangle, row, column) {
        true => alpha * a.at(row, column),
        false => alpha * a.at(column, row),
    };
    let other = |row: usize, column: usize| b.at(row, column);
    c.check(&format!("symm {side} {triangle}"), &bound, &z, |row, column| {
        let added = beta.map(|beta| beta * c.at(row, column));
        summed(product_terms(side, (row, column), order, &entry, &other).chain(added))
    });
}

#[test]
fn products_with_a_symmetric_matrix_read_one_triangle() {
    everywhere_and_in_workers("products_with_a_symmetric_matrix_read_one_triangle", |gpu| {
        for side in SIDES {
            for triangle in TRIANGLES {
                for layout in [[false, false], [true, false], [false, true], [true, true]] {
                    for beta in [None, Some(-2.0)] {
                        symmetric::<f32>(gpu, (side, triangle), layout, beta);
                        symmetric::<f64>(gpu, (side, triangle), layout, beta);
                    }
                }
            }
        }
    });
}

fn triangular<T: TestNumber + Real>(
    gpu: &DeviceRuntime,
    (side, triangle, diagonal): (Side, Triangle, Diagonal),
    [a_columns, b_columns]: [bool; 2],
) {
    let (shape, alpha) = ((4, 6), -0.5);
    let order = if side == Side::Left { 4 } else { 6 };
    let a = triangle_of::<T>(order, triangle, diagonal, a_columns);
    let (b, c) = (Stored::<T>::new(7, shape, b_columns), Stored::<T>::new(8, shape, b_columns));
    let (x, y, z) = (a.upload(gpu), b.upload(gpu), c.upload(gpu));
    let blas = Blas::new(gpu);
    let trmm = blas.trmm(side, alpha, a.matrix(&x), (triangle, diagonal), b.matrix(&y), c.matrix(&z));
    let bound = Tolerance::of(&trmm.operation().unwrap());
    trmm.submit().unwrap();
    let entry = |row: usize, column: usize| match row == column && diagonal == Diagonal::Unit {
        true => alpha,
        false if belongs(triangle, row, column) => alpha * a.at(row, column),
        false => 0.0,
    };
    let other = |row: usize, column: usize| b.at(row, column);
    c.check(&format!("trmm {side} {triangle} {diagonal}"), &bound, &z, |row, column| {
        summed(product_terms(side, (row, column), order, &entry, &other))
    });
}

#[test]
fn products_with_a_triangular_matrix_read_one_triangle() {
    everywhere_and_in_workers("products_with_a_triangular_matrix_read_one_triangle", |gpu| {
        for side in SIDES {
            for triangle in TRIANGLES {
                for diagonal in [Diagonal::Stored, Diagonal::Unit] {
                    for layout in [[false, false], [true, false], [false, true], [true, true]] {
                        triangular::<f32>(gpu, (side, triangle, diagonal), layout);
                        triangular::<f64>(gpu, (side, triangle, diagonal), layout);
                    }
                }
            }
        }
    });
}

#[test]
fn recorded_matrix_operations_are_replayed_in_order() {
    everywhere_and_in_workers("recorded_matrix_operations_are_replayed_in_order", |gpu| {
        let blas = Blas::new(gpu);
        let a = gpu.upload(&[1.0_f32, 2.0, 2.0, 3.0]).unwrap();
        let (b, c) = (gpu.upload(&[1.0_f32, 0.0, 0.0, 1.0]).unwrap(), gpu.allocate::<f32>(4).unwrap());
        let square = |buffer| Matrix::new(buffer, 2, 2);
        let mut graph = gpu.graph();
        // B goes to 2 A B with the upper triangle, then to its transpose.
        blas.symm(Side::Left, 2.0, (square(&a), Triangle::Upper), square(&b), None, square(&c))
            .record(&mut graph)
            .unwrap();
        blas.transpose(square(&c), square(&b)).record(&mut graph).unwrap();
        blas.trmm(Side::Left, 1.0, square(&a), (Triangle::Lower, Diagonal::Stored), square(&b), square(&c))
            .record(&mut graph)
            .unwrap();
        let graph = graph.build().unwrap();
        drop(blas);
        graph.replay().unwrap();
        assert_eq!(b.download().unwrap(), [2.0, 4.0, 4.0, 6.0]);
        assert_eq!(c.download().unwrap(), [2.0, 4.0, 16.0, 26.0]);
        graph.replay().unwrap();
        assert_eq!(b.download().unwrap(), [20.0, 32.0, 32.0, 52.0]);
    });
}

#[test]
fn a_factor_of_zero_reads_nothing() {
    everywhere_and_in_workers("a_factor_of_zero_reads_nothing", |gpu| {
        let blas = Blas::new(gpu);
        let nan = gpu.upload(&[f32::NAN; 4]).unwrap();
        let b = gpu.upload(&[1.0_f32, 2.0, 3.0, 4.0]).unwrap();
        let c = gpu.upload(&[f32::NAN; 4]).unwrap();
        let square = |buffer| Matrix::new(buffer, 2, 2);
        blas.geam(0.0, square(&nan), Some((2.0, square(&b))), square(&c)).submit().unwrap();
        assert_eq!(c.download().unwrap(), [2.0, 4.0, 6.0, 8.0]);
        c.fill(f32::NAN).unwrap();
        blas.geam(0.5, square(&b), Some((0.0, square(&nan))), square(&c)).submit().unwrap();
        assert_eq!(c.download().unwrap(), [0.5, 1.0, 1.5, 2.0]);
        c.fill(f32::NAN).unwrap();
        blas.geam(0.0, square(&nan), Some((0.0, square(&nan))), square(&c)).submit().unwrap();
        assert_eq!(c.download().unwrap(), [0.0; 4]);
        let symm = |beta| {
            blas.symm(Side::Left, 0.0, (square(&nan), Triangle::Upper), square(&nan), beta, square(&c))
        };
        c.upload(&[1.0, 2.0, 3.0, 4.0]).unwrap();
        symm(Some(3.0)).submit().unwrap();
        assert_eq!(c.download().unwrap(), [3.0, 6.0, 9.0, 12.0]);
        c.fill(f32::NAN).unwrap();
        symm(Some(0.0)).submit().unwrap();
        assert_eq!(c.download().unwrap(), [0.0; 4]);
        c.fill(f32::NAN).unwrap();
        let kind = (Triangle::Upper, Diagonal::Stored);
        blas.trmm(Side::Left, 0.0, square(&nan), kind, square(&nan), square(&c)).submit().unwrap();
        assert_eq!(c.download().unwrap(), [0.0; 4]);
    });
}

#[test]
fn matrices_without_elements_are_nothing_to_do() {
    everywhere_and_in_workers("matrices_without_elements_are_nothing_to_do", |gpu| {
        let blas = Blas::new(gpu);
        let (none, square) = (gpu.allocate::<f64>(0).unwrap(), gpu.zeros::<f64>(9).unwrap());
        let empty = || Matrix::new(&none, 0, 3);
        blas.geam(1.0, empty(), Some((1.0, empty())), empty()).submit().unwrap();
        let side = Side::Right;
        let a = || Matrix::new(&square, 3, 3);
        blas.symm(side, 1.0, (a(), Triangle::Upper), empty(), None, empty()).submit().unwrap();
        blas.trmm(side, 1.0, a(), (Triangle::Upper, Diagonal::Unit), empty(), empty()).submit().unwrap();
        let mut graph = gpu.graph();
        blas.transpose(empty(), Matrix::new(&none, 3, 0)).record(&mut graph).unwrap();
        graph.build().unwrap().replay().unwrap();
    });
}

#[test]
fn what_does_not_fit_is_refused_before_anything_is_queued() {
    everywhere_and_in_workers("what_does_not_fit_is_refused_before_anything_is_queued", |gpu| {
        let blas = Blas::new(gpu);
        let (a, b, c) = (
            gpu.zeros::<f32>(16).unwrap(),
            gpu.zeros::<f32>(16).unwrap(),
            gpu.upload(&[7.0_f32; 16]).unwrap(),
        );
        let m = |buffer, rows, columns| Matrix::new(buffer, rows, columns);
        let refused = |call: kiln_libs::LibraryCall<'_>, wanted: &str| {
            let text = call.submit().unwrap_err().to_string();
            assert!(text.contains(wanted), "{text}");
        };
        let upper = (Triangle::Upper, Diagonal::Stored);
        refused(blas.geam(1.0, m(&a, 2, 3), None, m(&c, 3, 2)), "blas.geam: a of 2 x 3 and c of 3 x 2");
        refused(
            blas.geam(1.0, m(&a, 2, 3), Some((1.0, m(&b, 3, 2))), m(&c, 2, 3)),
            "b of 3 x 2 and c of 2 x 3",
        );
        refused(
            blas.geam(1.0, m(&a, 4, 4).leading(3), None, m(&c, 4, 4)),
            "`a` has a leading dimension of 3",
        );
        refused(blas.geam(1.0, m(&a, 5, 4), None, m(&c, 5, 4)), "`a` has 64 bytes and must have 80");
        refused(blas.geam(1.0, m(&a, 4, 4), None, m(&a, 4, 4)), "share memory, and one is written");
        refused(blas.geam(1.0, m(&a, 2, 2).batch(2), None, m(&c, 2, 2)), "a batch of 2 matrices");
        let symm = |x, y, z| blas.symm(Side::Left, 1.0, (x, Triangle::Upper), y, None, z);
        refused(symm(m(&a, 3, 3), m(&b, 4, 2), m(&c, 4, 2)), "a of 3 x 3, b of 4 x 2 and c of 4 x 2");
        refused(symm(m(&a, 4, 4), m(&b, 2, 4).transposed(), m(&c, 4, 2)), "store both alike");
        refused(symm(m(&a, 2, 2), m(&c, 2, 4), m(&c, 2, 4)), "`b` and `c` share memory");
        let trmm = |x, y, z| blas.trmm(Side::Right, 1.0, x, upper, y, z);
        refused(trmm(m(&a, 4, 4), m(&b, 4, 2), m(&c, 4, 2)), "a of 4 x 4, b of 4 x 2 and c of 4 x 2");
        refused(trmm(m(&a, 2, 2).leading(1), m(&b, 4, 2), m(&c, 4, 2)), "leading dimension of 1");
        refused(trmm(m(&a, 4, 4), m(&b, 8, 4), m(&c, 8, 4)), "`b` has 64 bytes and must have 128");
        assert_eq!(c.download().unwrap(), [7.0; 16]);
    });
}
