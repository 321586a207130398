//! Every call of the book's table, on the simulated device, on the GPU where there is one, and in a worker on both: one small case of each, with numbers that were
//! computed by hand, within the tolerance of the operation. Cases of all shapes, types and layouts are in the other files.

#![allow(clippy::drop_non_drop, reason = "drop says that the ticket is not waited for")]

mod kernels;
mod networks;
mod solvers;
mod sparse_matrices;

use std::collections::BTreeSet;

use kiln::buffer::Element;
use kiln::{DeviceRuntime, GpuRef};
use kiln_libs::Tolerance;
use kiln_libs::blas::{Blas, Diagonal, Matrix, Side, Triangle};
use kiln_libs::fft::Fft;
use kiln_operation::Operation;

use crate::rig::everywhere_and_in_workers;

/// Numbers that a call left, those it must leave, and how far they may be apart.
type Case = (Vec<f64>, Vec<f64>, f64);

struct Row {
    call: &'static str,
    run: fn(&DeviceRuntime) -> Case,
}

fn up<T: Element>(gpu: &DeviceRuntime, values: &[T]) -> GpuRef<T> {
    gpu.upload(values).unwrap()
}

fn out(gpu: &DeviceRuntime, len: usize) -> GpuRef<f32> {
    gpu.upload(&vec![-9.0_f32; len]).unwrap()
}

fn down(buffer: &GpuRef<f32>) -> Vec<f64> {
    buffer.download().unwrap().into_iter().map(f64::from).collect()
}

/// What an operation may lose in sums of terms that are 100 at most, together.
fn close(operation: &Operation) -> f64 {
    Tolerance::of(operation).bound(100.0, 100.0)
}

fn square(buffer: &GpuRef<f32>) -> Matrix<'_, f32> {
    Matrix::new(buffer, 2, 2)
}

macro_rules! library {
    ($call:expr, $result:expr, $wanted:expr) => {{
        let call = $call;
        let bound = close(&call.operation().unwrap());
        drop($call.submit().unwrap());
        (down(&$result), Vec::from($wanted), bound)
    }};
}
use library;

const A: [f32; 4] = [1.0, 2.0, 3.0, 4.0];

fn dense() -> Vec<Row> {
    [first_vectors(), more_vectors(), matrices()].into_iter().flatten().collect()
}

fn first_vectors() -> Vec<Row> {
    vec![
        Row {
            call: "blas.matmul",
            run: |gpu| {
                let (a, c, blas) = (up(gpu, &A), out(gpu, 4), Blas::new(gpu));
                library!(blas.matmul(square(&a), square(&a), square(&c)), c, [7.0, 10.0, 15.0, 22.0])
            },
        },
        Row {
            call: "blas.gemv",
            run: |gpu| {
                let (a, x, y, blas) = (up(gpu, &A), up(gpu, &[1.0, 10.0]), out(gpu, 2), Blas::new(gpu));
                library!(blas.gemv(1.0, square(&a), &x, None, &y), y, [21.0, 43.0])
            },
        },
        Row {
            call: "blas.ger",
            run: |gpu| {
                let (x, y, a) = (up(gpu, &[1.0, 2.0]), up(gpu, &[3.0, 4.0]), up(gpu, &A));
                let blas = Blas::new(gpu);
                library!(blas.ger(1.0, &x, &y, square(&a)), a, [4.0, 6.0, 9.0, 12.0])
            },
        },
        Row {
            call: "blas.dot",
            run: |gpu| {
                let (x, one, blas) = (up(gpu, &A), out(gpu, 1), Blas::new(gpu));
                library!(blas.dot(&x, &x, &one), one, [30.0])
            },
        },
        Row {
            call: "blas.nrm2",
            run: |gpu| {
                let (x, one, blas) = (up(gpu, &[3.0_f32, 4.0]), out(gpu, 1), Blas::new(gpu));
                library!(blas.nrm2(&x, &one), one, [5.0])
            },
        },
        Row {
            call: "blas.axpy",
            run: |gpu| {
                let (x, y, blas) = (up(gpu, &A), up(gpu, &[1.0_f32; 4]), Blas::new(gpu));
                library!(blas.axpy(2.0, &x, &y), y, [3.0, 5.0, 7.0, 9.0])
            },
        },
        Row {
            call: "blas.scal",
            run: |gpu| {
                let (x, blas) = (up(gpu, &A), Blas::new(gpu));
                library!(blas.scal(-2.0, &x), x, [-2.0, -4.0, -6.0, -8.0])
            },
        },
        Row {
            call: "blas.copy",
            run: |gpu| {
                let (x, y, blas) = (up(gpu, &A), out(gpu, 4), Blas::new(gpu));
                library!(blas.copy(&x, &y), y, [1.0, 2.0, 3.0, 4.0])
            },
        },
    ]
}

fn more_vectors() -> Vec<Row> {
    vec![
        Row {
            call: "blas.swap",
            run: |gpu| {
                let (x, y, blas) = (up(gpu, &A), up(gpu, &[5.0_f32; 4]), Blas::new(gpu));
                library!(blas.swap(&x, &y), y, [1.0, 2.0, 3.0, 4.0])
            },
        },
        Row {
            call: "blas.asum",
            run: |gpu| {
                let (x, one, blas) = (up(gpu, &[-3.0_f32, 4.0]), out(gpu, 1), Blas::new(gpu));
                library!(blas.asum(&x, &one), one, [7.0])
            },
        },
        Row {
            call: "blas.iamax",
            run: |gpu| {
                let (x, place) = (up(gpu, &[1.0_f32, -7.0, 5.0]), up(gpu, &[0_i64]));
                drop(Blas::new(gpu).iamax(&x, &place).submit().unwrap());
                (vec![place.download().unwrap()[0] as f64], vec![2.0], 0.0)
            },
        },
        Row {
            call: "blas.syrk",
            run: |gpu| {
                let (a, c, blas) = (up(gpu, &A), up(gpu, &[0.0_f32; 4]), Blas::new(gpu));
                let call = blas.syrk(1.0, square(&a), None, Triangle::Lower, square(&c));
                let bound = close(&call.operation().unwrap());
                drop(call.submit().unwrap());
                (down(&c), vec![5.0, 0.0, 11.0, 25.0], bound)
            },
        },
        Row {
            call: "blas.symm",
            run: |gpu| {
                let (a, b, c) = (up(gpu, &[1.0, f32::NAN, 2.0, 3.0]), up(gpu, &A), out(gpu, 4));
                let blas = Blas::new(gpu);
                let symmetric = (square(&a), Triangle::Lower);
                library!(
                    blas.symm(Side::Left, 1.0, symmetric, square(&b), None, square(&c)),
                    c,
                    [7.0, 10.0, 11.0, 16.0]
                )
            },
        },
        Row {
            call: "blas.trmm",
            run: |gpu| {
                let (a, b, c) = (up(gpu, &[2.0, f32::NAN, 1.0, 3.0]), up(gpu, &A), out(gpu, 4));
                let (blas, kind) = (Blas::new(gpu), (Triangle::Lower, Diagonal::Stored));
                library!(
                    blas.trmm(Side::Left, 1.0, square(&a), kind, square(&b), square(&c)),
                    c,
                    [2.0, 4.0, 10.0, 14.0]
                )
            },
        },
    ]
}

fn matrices() -> Vec<Row> {
    vec![
        Row {
            call: "blas.trsm",
            run: |gpu| {
                let (a, b) = (up(gpu, &[2.0, f32::NAN, 1.0, 4.0]), up(gpu, &[2.0_f32, 4.0, 9.0, 10.0]));
                let (blas, kind) = (Blas::new(gpu), (Triangle::Lower, Diagonal::Stored));
                library!(blas.trsm(Side::Left, 1.0, square(&a), kind, square(&b)), b, [1.0, 2.0, 2.0, 2.0])
            },
        },
        Row {
            call: "blas.geam",
            run: |gpu| {
                let (a, b, c, blas) = (up(gpu, &A), up(gpu, &A), out(gpu, 4), Blas::new(gpu));
                library!(
                    blas.geam(2.0, square(&a), Some((1.0, square(&b).transposed())), square(&c)),
                    c,
                    [3.0, 7.0, 8.0, 12.0]
                )
            },
        },
        Row {
            call: "blas.transpose",
            run: |gpu| {
                let (a, c, blas) = (up(gpu, &A), out(gpu, 4), Blas::new(gpu));
                library!(blas.transpose(square(&a), square(&c)), c, [1.0, 3.0, 2.0, 4.0])
            },
        },
        Row {
            call: "fft.transform",
            run: |gpu| {
                let (x, y) = (up(gpu, &[[1.0_f32, 0.0], [2.0, 0.0]]), up(gpu, &[[0.0_f32; 2]; 2]));
                let fft = Fft::new(gpu);
                drop(fft.transform(&[2]).forward(&x, &y).submit().unwrap());
                let found = y.download().unwrap().into_iter().flatten().map(f64::from).collect();
                let operation = fft.transform(&[2]).forward(&x, &y).operation().unwrap();
                (found, vec![3.0, 0.0, -1.0, 0.0], Tolerance::of(&operation).bound(10.0, 3.0))
            },
        },
    ]
}

fn exact(found: &[f64], wanted: &[f64]) -> Case {
    (found.to_vec(), wanted.to_vec(), 0.0)
}

fn rows() -> Vec<Row> {
    [dense(), solvers::solvers(), sparse_matrices::sparse(), networks::networks(), kernels::kernels()]
        .into_iter()
        .flatten()
        .collect()
}

#[test]
fn every_call_gives_what_was_computed_by_hand_on_every_device_and_in_workers() {
    let rows = rows();
    let names: BTreeSet<_> = rows.iter().map(|row| row.call).collect();
    assert_eq!(names.len(), rows.len(), "a call is there twice");
    assert!(names.len() >= 40, "{} calls", names.len());
    everywhere_and_in_workers(
        "every_call_gives_what_was_computed_by_hand_on_every_device_and_in_workers",
        |gpu| {
            for row in &rows {
                let (found, wanted, bound) = (row.run)(gpu);
                assert_eq!(found.len(), wanted.len(), "{}", row.call);
                for (found, wanted) in found.iter().zip(&wanted) {
                    assert!(
                        (found - wanted).abs() <= bound,
                        "{}: {found} is not {wanted} within {bound:e}",
                        row.call
                    );
                }
            }
        },
    );
}

/// The calls in the table of operations of the book.
#[test]
fn every_call_of_the_book_is_among_them() {
    let book = include_str!("../../../../docs/book/src/libraries.md");
    let (_, table) = book.split_once("| call | computes | elements | library |").unwrap();
    let (table, _) = table.split_once("\n\n").unwrap();
    let known: BTreeSet<_> = rows().iter().map(|row| row.call).collect();
    let mut seen = 0;
    for line in table.lines().skip(2) {
        let cell = line.split('|').nth(1).unwrap();
        let words: Vec<&str> = cell.split('`').skip(1).step_by(2).collect();
        let module = words[0].split_once('.').unwrap().0;
        let stems: Vec<String> = words
            .iter()
            .filter(|word| **word != "…_backward")
            .map(|word| if word.contains('.') { (*word).to_owned() } else { format!("{module}.{word}") })
            .collect();
        let backward =
            words.contains(&"…_backward").then(|| stems.iter().map(|stem| format!("{stem}_backward")));
        for call in stems.iter().cloned().chain(backward.into_iter().flatten()) {
            assert!(known.contains(call.as_str()), "{call} is in the book and has no case");
            seen += 1;
        }
    }
    assert!(seen >= 40, "{seen} calls in the book");
}
