//! Cross entropy and embeddings with their gradients, against sums in `f64`.

use half::{bf16, f16};
use kiln::DeviceRuntime;
use kiln_libs::Tolerance;
use kiln_libs::dnn::{Dnn, NetworkElement, RowIndex};

use crate::numbers::{TestNumber, close, made_up};
use crate::rig::everywhere_and_in_workers;

/// Labels of rows; one below 0 is left out, and -7 as well as -1.
fn labels(rows: usize, classes: usize) -> Vec<i64> {
    (0..rows).map(|row| if row % 5 == 3 { -1 - row as i64 } else { ((row * 7) % classes) as i64 }).collect()
}

fn entropy<T: TestNumber + NetworkElement, I: RowIndex>(
    gpu: &DeviceRuntime,
    (rows, classes): (usize, usize),
    index: impl Fn(i64) -> I,
) {
    let dnn = Dnn::new(gpu);
    let numbers: Vec<T> =
        made_up::<T>(1, rows * classes).iter().map(|x| T::from_number(4.0 * x.number())).collect();
    let (chosen, factors) = (labels(rows, classes), made_up::<f32>(2, rows));
    let given: Vec<I> = chosen.iter().map(|label| index(*label)).collect();
    let (x, l) = (gpu.upload(&numbers).unwrap(), gpu.upload(&given).unwrap());
    let (losses, dl) = (gpu.allocate::<f32>(rows).unwrap(), gpu.upload(&factors).unwrap());
    let dx = gpu.allocate::<T>(rows * classes).unwrap();
    let forward = dnn.cross_entropy(&x, classes, &l, &losses);
    let backward = dnn.cross_entropy_backward(&x, classes, &l, &dl, &dx);
    let (bound, slope_bound) =
        (Tolerance::of(&forward.operation().unwrap()), Tolerance::of(&backward.operation().unwrap()));
    forward.submit().unwrap();
    backward.submit().unwrap();
    let (losses, slopes) = (losses.download().unwrap(), dx.download().unwrap());
    for row in 0..rows {
        let at = |column: usize| numbers[row * classes + column].number();
        let greatest = (0..classes).map(at).fold(f64::NEG_INFINITY, f64::max);
        let sum: f64 = (0..classes).map(|column| (at(column) - greatest).exp()).sum();
        let Ok(label) = usize::try_from(chosen[row]) else {
            assert_eq!(losses[row], 0.0);
            assert!((0..classes).all(|column| slopes[row * classes + column].number() == 0.0));
            continue;
        };
        let distance = greatest - at(label);
        let what = format!("row {row} of {rows} x {classes}");
        close(&what, &bound, f64::from(losses[row]), sum.ln() + distance, 1.0 + distance + sum.ln());
        for column in 0..classes {
            let (share, target) = ((at(column) - greatest).exp() / sum, f64::from(u8::from(column == label)));
            let factor = f64::from(factors[row]);
            let magnitude = factor.abs() * (share * (1.0 + greatest - at(column)) + target);
            let found = slopes[row * classes + column].number();
            close(&format!("{what}, {column}"), &slope_bound, found, factor * (share - target), magnitude);
        }
    }
}

#[test]
fn cross_entropy_and_its_gradient() {
    everywhere_and_in_workers("cross_entropy_and_its_gradient", |gpu| {
        for shape in [(1, 1), (3, 2), (9, 33), (17, 100)] {
            entropy::<f32, i32>(gpu, shape, |label| label as i32);
            entropy::<f32, i64>(gpu, shape, |label| label);
            entropy::<f16, i32>(gpu, shape, |label| label as i32);
            entropy::<bf16, i64>(gpu, shape, |label| label);
        }
    });
}

#[test]
fn rows_that_have_no_cross_entropy() {
    everywhere_and_in_workers("rows_that_have_no_cross_entropy", |gpu| {
        let dnn = Dnn::new(gpu);
        let (infinity, nan) = (f32::INFINITY, f32::NAN);
        let rows =
            [[1.0, 2.0], [nan, 0.0], [infinity, 0.0], [-infinity, 0.0], [-infinity, -infinity], [nan, nan]];
        let x = gpu.upload(rows.as_flattened()).unwrap();
        // No class; then NaN and infinities; the last row is left out.
        let l = gpu.upload(&[2_i32, 1, 1, 0, 0, -1]).unwrap();
        let (losses, ones) = (gpu.allocate::<f32>(6).unwrap(), gpu.upload(&[1.0_f32; 6]).unwrap());
        let dx = gpu.allocate::<f32>(12).unwrap();
        dnn.cross_entropy(&x, 2, &l, &losses).submit().unwrap();
        dnn.cross_entropy_backward(&x, 2, &l, &ones, &dx).submit().unwrap();
        let (losses, slopes) = (losses.download().unwrap(), dx.download().unwrap());
        assert!(losses[..3].iter().all(|loss| loss.is_nan()), "{losses:?}");
        assert_eq!(losses[3], infinity);
        assert!(losses[4].is_nan());
        assert_eq!(losses[5], 0.0);
        assert!(slopes[..6].iter().all(|slope| slope.is_nan()), "{slopes:?}");
        assert_eq!(slopes[6..8], [-1.0, 1.0]);
        assert!(slopes[8..10].iter().all(|slope| slope.is_nan()), "{slopes:?}");
        assert_eq!(slopes[10..], [0.0, 0.0]);
    });
}

fn table<T: TestNumber + NetworkElement, I: RowIndex>(
    gpu: &DeviceRuntime,
    (rows, columns, count): (usize, usize, usize),
    index: impl Fn(i64) -> I,
) {
    let dnn = Dnn::new(gpu);
    let (numbers, gradients) = (made_up::<T>(3, rows * columns), made_up::<T>(4, count * columns));
    let chosen: Vec<i64> = (0..count).map(|at| ((at * at + 3) % rows) as i64).collect();
    let given: Vec<I> = chosen.iter().map(|row| index(*row)).collect();
    let (t, i) = (gpu.upload(&numbers).unwrap(), gpu.upload(&given).unwrap());
    let (y, dy) = (gpu.allocate::<T>(count * columns).unwrap(), gpu.upload(&gradients).unwrap());
    let dt = gpu.upload(&made_up::<T>(5, rows * columns)).unwrap();
    dnn.embedding(&t, columns, &i, &y).submit().unwrap();
    let backward = dnn.embedding_backward(&i, columns, &dy, &dt);
    let bound = Tolerance::of(&backward.operation().unwrap());
    backward.submit().unwrap();
    let (found, slopes) = (y.download().unwrap(), dt.download().unwrap());
    for (at, row) in chosen.iter().enumerate() {
        for column in 0..columns {
            let wanted = numbers[*row as usize * columns + column].number();
            assert_eq!(found[at * columns + column].number(), wanted);
        }
    }
    for row in 0..rows {
        for column in 0..columns {
            let terms = || {
                let places = (0..count).filter(|at| chosen[*at] == row as i64);
                places.map(|at| gradients[at * columns + column].number())
            };
            let magnitude = terms().map(f64::abs).sum();
            let slope = slopes[row * columns + column].number();
            close(&format!("row {row} column {column}"), &bound, slope, terms().sum(), magnitude);
        }
    }
}

#[test]
fn embeddings_and_their_gradients() {
    everywhere_and_in_workers("embeddings_and_their_gradients", |gpu| {
        for sizes in [(1, 1, 1), (5, 3, 40), (100, 17, 33), (7, 64, 12)] {
            table::<f32, i32>(gpu, sizes, |row| row as i32);
            table::<f32, i64>(gpu, sizes, |row| row);
            table::<f16, i64>(gpu, sizes, |row| row);
            table::<bf16, i32>(gpu, sizes, |row| row as i32);
        }
    });
}

#[test]
fn indices_that_are_no_rows() {
    everywhere_and_in_workers("indices_that_are_no_rows", |gpu| {
        let dnn = Dnn::new(gpu);
        let t = gpu.upload(&[1.0_f32, 2.0, 3.0, 4.0]).unwrap();
        let i = gpu.upload(&[1_i64, -1, 2, i64::MAX, i64::MIN, 0]).unwrap();
        let y = gpu.allocate::<f32>(12).unwrap();
        dnn.embedding(&t, 2, &i, &y).submit().unwrap();
        let found = y.download().unwrap();
        assert_eq!((&found[..2], &found[10..]), (&[3.0, 4.0][..], &[1.0, 2.0][..]));
        assert!(found[2..10].iter().all(|value| value.is_nan()), "{found:?}");
        let (dy, dt) = (gpu.upload(&[1.0_f32; 12]).unwrap(), gpu.upload(&[9.0_f32; 4]).unwrap());
        dnn.embedding_backward(&i, 2, &dy, &dt).submit().unwrap();
        assert_eq!(dt.download().unwrap(), [1.0; 4]);
    });
}

#[test]
fn labels_and_tables_in_graphs() {
    everywhere_and_in_workers("labels_and_tables_in_graphs", |gpu| {
        let dnn = Dnn::new(gpu);
        let t = gpu.upload(&[0.0_f32, 0.0, 0.0, 0.0]).unwrap();
        let (i, l) = (gpu.upload(&[1_i32, 1, 0]).unwrap(), gpu.upload(&[0_i32, 1, -1]).unwrap());
        let (x, losses) = (gpu.allocate::<f32>(6).unwrap(), gpu.allocate::<f32>(3).unwrap());
        let (ones, dx) = (gpu.upload(&[1.0_f32; 3]).unwrap(), gpu.allocate::<f32>(6).unwrap());
        let dt = gpu.allocate::<f32>(4).unwrap();
        let mut graph = gpu.graph();
        dnn.embedding(&t, 2, &i, &x).record(&mut graph).unwrap();
        dnn.cross_entropy(&x, 2, &l, &losses).record(&mut graph).unwrap();
        dnn.cross_entropy_backward(&x, 2, &l, &ones, &dx).record(&mut graph).unwrap();
        dnn.embedding_backward(&i, 2, &dx, &dt).record(&mut graph).unwrap();
        let graph = graph.build().unwrap();
        drop(dnn);
        for _ in 0..2 {
            graph.replay().unwrap();
            assert_eq!(dx.download().unwrap(), [-0.5, 0.5, 0.5, -0.5, 0.0, 0.0]);
            assert_eq!(dt.download().unwrap(), [0.0; 4]);
            let losses = losses.download().unwrap();
            assert!((losses[0] - 2.0_f32.ln()).abs() < 1e-6 && losses[0] == losses[1] && losses[2] == 0.0);
        }
    });
}

#[test]
fn labels_and_tables_that_do_not_fit_are_refused() {
    everywhere_and_in_workers("labels_and_tables_that_do_not_fit_are_refused", |gpu| {
        let dnn = Dnn::new(gpu);
        let (x, l) = (gpu.upload(&[1.0_f32; 6]).unwrap(), gpu.upload(&[0_i32; 3]).unwrap());
        let (losses, y) = (gpu.upload(&[7.0_f32; 3]).unwrap(), gpu.upload(&[8.0_f32; 6]).unwrap());
        let two = losses.view(..2).unwrap();
        let check = |result: kiln_libs::Result<kiln::Ticket>, wanted: &str| {
            let text = result.unwrap_err().to_string();
            assert!(text.contains(wanted), "{text}");
        };
        check(
            dnn.cross_entropy(&x, 4, &l, &losses).submit(),
            "`logits` has 6 elements, which are no rows of 4",
        );
        check(dnn.cross_entropy(&x, 0, &l, &losses).submit(), "`classes` is 0; use 1 or more");
        check(dnn.cross_entropy(&x, 3, &l, &losses).submit(), "`labels` has 3 elements and must have 2");
        check(dnn.cross_entropy(&x, 2, &l, &two).submit(), "`losses` has 2 elements and must have 3");
        check(
            dnn.cross_entropy(&x, 2, &l, &x.view(..3).unwrap()).submit(),
            "`logits` and `losses` share memory",
        );
        let backward = |dl, dx| dnn.cross_entropy_backward(&x, 2, &l, dl, dx).submit();
        check(backward(&two, &y), "`loss_gradients` has 2 elements and must have 3");
        check(backward(&losses, &losses), "`logit_gradients` has 3 elements and must have 6");
        check(backward(&losses, &x), "`logits` and `logit_gradients` share memory");
        check(dnn.embedding(&x, 4, &l, &y).submit(), "`table` has 6 elements, which are no rows of 4");
        check(
            dnn.embedding(&x, 3, &l, &y).submit(),
            "`rows` has 6 elements and must have 9, a row of 3 for each of 3 `indices`",
        );
        check(dnn.embedding(&x, 2, &l, &x).submit(), "`table` and `rows` share memory");
        check(
            dnn.embedding_backward(&l, 2, &y, &y).submit(),
            "`row_gradients` and `table_gradients` share memory",
        );
        check(
            dnn.embedding_backward(&l, 3, &y, &x).submit(),
            "`row_gradients` has 6 elements and must have 9, a row of 3 for each of 3 `indices`",
        );
        assert_eq!((losses.download().unwrap(), y.download().unwrap()), (vec![7.0; 3], vec![8.0; 6]));
        let none = gpu.allocate::<f32>(0).unwrap();
        let no_labels = gpu.allocate::<i32>(0).unwrap();
        dnn.cross_entropy(&none, 2, &no_labels, &none).submit().unwrap();
        dnn.embedding(&x, 2, &no_labels, &none).submit().unwrap();
        dnn.embedding_backward(&no_labels, 2, &none, &y).submit().unwrap();
        assert_eq!(y.download().unwrap(), [0.0; 6]);
    });
}
