//! `Q` as a matrix: its columns are orthogonal and of length 1, and with `R` they give the matrix again.

use kiln::DeviceRuntime;
use kiln_libs::Tolerance;
use kiln_libs::solve::{Matrix, Real, Solve};

use crate::exact::{Exact, small};
use crate::numbers::TestNumber;
use crate::rig::{everywhere_and_in_workers, is_simulated};
use crate::stored::Stored;

fn explicit<T: TestNumber + Real>(gpu: &DeviceRuntime, (m, n): (usize, usize), gap: usize) {
    let solve = Solve::new(gpu);
    let what = format!("{m} x {n}");
    let given = Stored::<T>::new(11, (m, n), true, gap, 1);
    let a = Exact::of(&given);
    let (buffer, tau) = (given.upload(gpu), gpu.allocate::<T>(n).unwrap());
    let factor = solve.qr(given.matrix(&buffer, 1), &tau);
    let mut bound = Tolerance::of(&factor.operation().unwrap()).relative;
    factor.submit().unwrap().wait().unwrap();
    let factors = Exact::of(&given.downloaded(&buffer));
    let r = Exact::new(n, n, |row, column| if column >= row { factors.at(row, column) } else { 0.0 });
    let form = solve.form_q(given.matrix(&buffer, 1), &tau);
    let orthogonal = Tolerance::of(&form.operation().unwrap()).relative;
    bound += orthogonal;
    form.submit().unwrap().wait().unwrap();
    let q = Exact::of(&given.downloaded(&buffer));
    let identity = Exact::new(n, n, |row, column| f64::from(u8::from(row == column)));
    small(&what, q.transposed().times(&q).minus(&identity).norm(), orthogonal, 1.0);
    small(&what, q.times(&r).minus(&a).norm(), bound, a.norm());
}

#[test]
fn the_columns_of_q_are_orthogonal_and_give_the_matrix_again() {
    everywhere_and_in_workers("the_columns_of_q_are_orthogonal_and_give_the_matrix_again", |gpu| {
        for (m, n, gap) in [(1, 1, 0), (4, 4, 1), (9, 4, 0), (33, 7, 2), (20, 20, 0)] {
            explicit::<f32>(gpu, (m, n), gap);
            explicit::<f64>(gpu, (m, n), gap);
        }
    });
}

#[test]
fn q_in_a_graph() {
    everywhere_and_in_workers("q_in_a_graph", |gpu| {
        let solve = Solve::new(gpu);
        let a = gpu.allocate::<f64>(2).unwrap();
        let tau = gpu.allocate::<f64>(1).unwrap();
        let column = Matrix::new(&a, 1, 2).transposed();
        let mut graph = gpu.graph();
        let (_, factor) = solve.qr(column, &tau).record(&mut graph).unwrap();
        let (_, form) = solve.form_q(column, &tau).record(&mut graph).unwrap();
        let graph = match graph.build() {
            Ok(graph) => graph,
            // cuSOLVER 12 of CUDA 13.0 cannot be captured here, and the graph says so.
            Err(error) if !is_simulated(gpu) => {
                assert!(error.driver().is_some_and(|driver| driver.is_unsupported()), "{error}");
                return println!("not recorded: {error}");
            }
            Err(error) => panic!("{error}"),
        };
        for (x, y) in [(3.0, 4.0), (-8.0, 6.0)] {
            a.upload(&[x, y]).unwrap();
            graph.replay().unwrap();
            let length = f64::hypot(x, y);
            let q = a.download().unwrap();
            assert!((q[0].abs() - x.abs() / length).abs() < 1e-14, "{q:?}");
            assert!((q[1].abs() - y.abs() / length).abs() < 1e-14, "{q:?}");
            assert!((q[0] * y - q[1] * x).abs() < 1e-13, "{q:?} is not parallel to {x} {y}");
        }
        factor.check().unwrap();
        form.check().unwrap();
    });
}

#[test]
fn what_has_no_q_is_refused() {
    everywhere_and_in_workers("what_has_no_q_is_refused", |gpu| {
        let solve = Solve::new(gpu);
        let (a, tau) = (gpu.upload(&[5.0_f64; 12]).unwrap(), gpu.zeros::<f64>(4).unwrap());
        let refused = |matrix: Matrix<'_, f64>, tau, wanted: &str| {
            let text = solve.form_q(matrix, tau).submit().unwrap_err().to_string();
            assert!(text.contains(wanted), "{text}");
        };
        refused(Matrix::new(&a, 4, 3).transposed(), &tau, "`a` is 3 x 4: it has more columns than `q` has");
        refused(Matrix::new(&a, 4, 3), &tau, "solve.form_q");
        let short = tau.view(..2).unwrap();
        refused(Matrix::new(&a, 3, 4).transposed(), &short, "`tau` has 2 elements and must have 3");
        refused(Matrix::new(&a, 3, 5).transposed(), &tau, "`a` has 96 bytes and must have 120");
        let inside = a.view(..3).unwrap();
        refused(Matrix::new(&a, 3, 4).transposed(), &inside, "`a` and `tau` share memory");
        assert_eq!(a.download().unwrap(), [5.0; 12]);
    });
}
