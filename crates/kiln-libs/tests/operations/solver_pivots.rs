//! Pivots that are no rows of their matrix: a typed error that comes with the ticket, and a device that stays usable.

use kiln::DeviceRuntime;
use kiln_libs::LibraryError;
use kiln_libs::solve::{Matrix, Solve, SolveFailure};

use crate::rig::{everywhere_and_in_workers, is_simulated};

const WRONG: [i64; 6] = [0, -1, 4, 1_000_000, i64::MIN, i64::MAX];

/// Solves `A x = b` with a matrix that exchanges the first two of three rows and doubles the third.
fn solves(gpu: &DeviceRuntime, solve: &Solve) {
    let a = gpu.upload(&[0.0_f64, 1.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 2.0]).unwrap();
    let (b, pivots) = (gpu.upload(&[3.0_f64, 4.0, 10.0]).unwrap(), gpu.allocate::<i64>(3).unwrap());
    let square = Matrix::new(&a, 3, 3);
    solve.lu(square, &pivots).submit().unwrap().wait().unwrap();
    solve.lu_solve(square, &pivots, Matrix::new(&b, 3, 1)).submit().unwrap().wait().unwrap();
    assert_eq!(b.download().unwrap(), [4.0, 3.0, 5.0]);
}

#[test]
fn a_pivot_that_is_no_row_is_told_when_the_ticket_is_waited_for() {
    everywhere_and_in_workers("a_pivot_that_is_no_row_is_told_when_the_ticket_is_waited_for", |gpu| {
        let solve = Solve::new(gpu);
        let a = gpu.upload(&[1.0_f32, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0]).unwrap();
        for (wrong, columns) in WRONG.into_iter().flat_map(|wrong| [(wrong, 1), (wrong, 2)]) {
            let b = gpu.upload(&vec![1.0_f32; 3 * columns]).unwrap();
            let pivots = gpu.upload(&[1_i64, wrong, wrong]).unwrap();
            let square = Matrix::new(&a, 3, 3).transposed();
            let ticket = solve.lu_solve(square, &pivots, Matrix::new(&b, 3, columns)).submit().unwrap();
            let error = ticket.wait().unwrap_err();
            let failure = SolveFailure::PivotOutOfRange { row: 1, pivot: wrong, order: 3 };
            assert_eq!(error.solve_failure(), Some(failure));
            let text = format!(
                "solve.lu_solve: the pivot of row 1, counted from 0, is {wrong}, and must be a row from 1 to 3; give the pivots that `lu` or `lu_batched` wrote with these factors"
            );
            assert_eq!(error.to_string(), text);
            assert_eq!(ticket.info().word().download().unwrap(), [2]);
            ticket.ticket().wait().unwrap();
            assert_eq!(pivots.download().unwrap(), [1, wrong, wrong], "the caller's pivots stay");
        }
        solves(gpu, &solve);
    });
}

#[test]
fn a_pivot_of_a_batch_that_is_no_row_is_told_and_the_other_matrices_are_solved() {
    let label = "a_pivot_of_a_batch_that_is_no_row_is_told_and_the_other_matrices_are_solved";
    everywhere_and_in_workers(label, |gpu| {
        let solve = Solve::new(gpu);
        for wrong in WRONG {
            let identities: Vec<f64> = (0..4 * 9).map(|at| if at % 9 % 4 == 0 { 2.0 } else { 0.0 }).collect();
            let (a, b) = (gpu.upload(&identities).unwrap(), gpu.upload(&[8.0_f64; 12]).unwrap());
            let pivots = [1, 2, 3, 1, 2, wrong, 1, 2, 3, wrong, wrong, 3];
            let pivots = gpu.upload(&pivots).unwrap();
            let (factors, sides) = (Matrix::new(&a, 3, 3).batch(4), Matrix::new(&b, 3, 1).batch(4));
            let ticket = solve.lu_solve_batched(factors, &pivots, sides).submit().unwrap();
            let error = ticket.wait().unwrap_err();
            let LibraryError::SolveBatch { operation, matrix, count, failed, failure } = error else {
                panic!("{error}");
            };
            assert_eq!((operation, matrix, count, failed), ("solve.lu_solve_batched", 1, 4, 2));
            assert_eq!(failure, SolveFailure::PivotOutOfRange { row: 2, pivot: wrong, order: 3 });
            assert_eq!(ticket.info().words().download().unwrap(), [0, 3, 0, 1]);
            let expected = [4.0, 4.0, 4.0, 8.0, 8.0, 8.0, 4.0, 4.0, 4.0, 8.0, 8.0, 8.0];
            assert_eq!(b.download().unwrap(), expected);
        }
        solves(gpu, &solve);
    });
}

#[test]
fn each_replay_of_a_graph_tells_of_its_pivots() {
    everywhere_and_in_workers("each_replay_of_a_graph_tells_of_its_pivots", |gpu| {
        let solve = Solve::new(gpu);
        let a = gpu.upload(&[2.0_f32, 0.0, 0.0, 2.0]).unwrap();
        let (b, pivots) = (gpu.upload(&[2.0_f32, 4.0, 6.0, 8.0]).unwrap(), gpu.upload(&[1_i64, 2]).unwrap());
        let mut graph = gpu.graph();
        let call = solve.lu_solve(Matrix::new(&a, 2, 2), &pivots, Matrix::new(&b, 2, 2));
        let (_, info) = call.record(&mut graph).unwrap();
        let graph = match graph.build() {
            Ok(graph) => graph,
            // A version of cuSOLVER that cannot be captured says so.
            Err(error) if !is_simulated(gpu) => return println!("not recorded: {error}"),
            Err(error) => panic!("{error}"),
        };
        graph.replay().unwrap();
        info.check().unwrap();
        assert_eq!(b.download().unwrap(), [1.0, 2.0, 3.0, 4.0]);
        pivots.upload(&[1, 3]).unwrap();
        graph.replay().unwrap();
        let failure = SolveFailure::PivotOutOfRange { row: 1, pivot: 3, order: 2 };
        assert_eq!(info.check().unwrap_err().solve_failure(), Some(failure));
        pivots.upload(&[1, 2]).unwrap();
        graph.replay().unwrap();
        info.check().unwrap();
    });
}

#[test]
fn pivots_of_a_batch_and_of_one_matrix_have_one_type() {
    everywhere_and_in_workers("pivots_of_a_batch_and_of_one_matrix_have_one_type", |gpu| {
        let solve = Solve::new(gpu);
        let numbers = [1.0_f64, 3.0, 2.0, 4.0];
        let (one, many) = (gpu.upload(&numbers).unwrap(), gpu.upload(&numbers).unwrap());
        let [of_one, of_many] = [0, 1].map(|_| gpu.allocate::<i64>(2).unwrap());
        // By columns: of rows, `lu` factors the transpose.
        let (one, many) = (Matrix::new(&one, 2, 2).transposed(), Matrix::new(&many, 2, 2).transposed());
        solve.lu(one, &of_one).submit().unwrap().wait().unwrap();
        solve.lu_batched(many, &of_many).submit().unwrap().wait().unwrap();
        assert_eq!(of_one.download().unwrap(), [2, 2]);
        assert_eq!(of_many.download().unwrap(), [2, 2]);
        let b = gpu.upload(&[5.0_f64, 11.0]).unwrap();
        solve.lu_solve_batched(one, &of_one, Matrix::new(&b, 2, 1)).submit().unwrap().wait().unwrap();
        let x = b.download().unwrap();
        // 1 x + 2 y = 5, 3 x + 4 y = 11.
        assert!((x[0] - 1.0).abs() < 1e-14 && (x[1] - 2.0).abs() < 1e-14, "{x:?}");
    });
}
