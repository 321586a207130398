//! Matrices and factors with NaN, infinities and zeros on the diagonal: what `wait` says of them.

use kiln::DeviceRuntime;
use kiln_libs::LibraryError;
use kiln_libs::solve::{Matrix, Solve, SolveFailure, Triangle};

use crate::rig::{everywhere_and_in_workers, is_simulated};

const NAN: f64 = f64::NAN;
const INFINITY: f64 = f64::INFINITY;

/// Square matrices of three rows, and where a number is none.
const BAD: [([f64; 9], &str); 8] = [
    ([NAN, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0], "a first pivot"),
    ([1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, NAN], "a last pivot"),
    ([1.0, NAN, 0.0, 2.0, 1.0, 3.0, 0.0, 4.0, 1.0], "beside the diagonal"),
    ([0.0, 1.0, 0.0, NAN, 1.0, 0.0, 0.0, 0.0, 1.0], "below a zero"),
    ([0.0, NAN, 0.0, 1.0, 1.0, 0.0, 0.0, 0.0, 1.0], "right of a zero"),
    ([0.0, 0.0, 0.0, NAN, 1.0, 0.0, 0.0, 0.0, 1.0], "below a row of zeros"),
    ([0.0, NAN, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0], "right of a column of zeros"),
    ([INFINITY, 1.0, 0.0, 1.0, 1.0, 0.0, 0.0, 0.0, 1.0], "an infinity"),
];

fn is_not_finite(failure: Option<SolveFailure>) -> bool {
    matches!(failure, Some(SolveFailure::NotFinite { .. }))
}

#[test]
fn lu_of_a_matrix_with_nan_is_told_alike_of_one_and_of_a_batch() {
    everywhere_and_in_workers("lu_of_a_matrix_with_nan_is_told_alike_of_one_and_of_a_batch", |gpu| {
        let solve = Solve::new(gpu);
        for (numbers, what) in BAD {
            for by_columns in [false, true] {
                let (one, many) = (gpu.upload(&numbers).unwrap(), gpu.upload(&numbers).unwrap());
                let pivots = gpu.allocate::<i64>(3).unwrap();
                let matrix = |buffer| match by_columns {
                    true => Matrix::new(buffer, 3, 3).transposed(),
                    false => Matrix::new(buffer, 3, 3),
                };
                let ticket = solve.lu(matrix(&one), &pivots).submit().unwrap();
                let error = ticket.wait().unwrap_err();
                assert!(is_not_finite(error.solve_failure()), "{what}: {error}");
                let text = error.to_string();
                assert!(text.starts_with("solve.lu: the factors have a NaN or an infinity"), "{text}");
                let next = "look for NaN and infinities in the matrix; if it has none, its factors overflow: scale it";
                assert!(text.ends_with(next), "{text}");
                assert!(ticket.info().word().download().unwrap()[0] < 0, "{what}");
                let ticket = solve.lu_batched(matrix(&many), &pivots).submit().unwrap();
                let error = ticket.wait().unwrap_err();
                assert!(is_not_finite(error.solve_failure()), "{what}: {error}");
                assert!(ticket.info().words().download().unwrap()[0] < 0, "{what}");
            }
        }
    });
}

#[test]
fn a_nan_at_any_place_of_a_matrix_is_told_with_its_place() {
    everywhere_and_in_workers("a_nan_at_any_place_of_a_matrix_is_told_with_its_place", |gpu| {
        let solve = Solve::new(gpu);
        let pivots = gpu.allocate::<i64>(3).unwrap();
        let batch_pivots = gpu.allocate::<i64>(9).unwrap();
        let identity = [1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0];
        // One with factors, one that is singular, and one whose rows are exchanged.
        for fine in [identity, [0.0; 9], [1.0, 5.0, 2.0, 7.0, 1.0, 3.0, 9.0, 4.0, 8.0]] {
            for at in 0..9 {
                let mut bad = fine;
                bad[at] = if at % 2 == 0 { NAN } else { -INFINITY };
                let wanted = Some(SolveFailure::NotFinite { pivot: (at / 3).min(at % 3) as u64 });
                for by_columns in [false, true] {
                    let one = gpu.upload(&bad).unwrap();
                    let matrix = Matrix::new(&one, 3, 3);
                    let matrix = if by_columns { matrix.transposed() } else { matrix };
                    let failure =
                        solve.lu(matrix, &pivots).submit().unwrap().wait().unwrap_err().solve_failure();
                    assert_eq!(failure, wanted, "{fine:?} at {at}");
                    let many = gpu.upload(&[identity, bad, identity].concat()).unwrap();
                    let matrix = Matrix::new(&many, 3, 3);
                    let matrix = if by_columns { matrix.transposed() } else { matrix };
                    let ticket = solve.lu_batched(matrix.batch(3), &batch_pivots).submit().unwrap();
                    assert_eq!(ticket.wait().unwrap_err().solve_failure(), wanted, "{fine:?} at {at}");
                    let words = ticket.info().words().download().unwrap();
                    assert!(words[1] < 0 && (words[0], words[2]) == (0, 0), "{words:?}");
                }
            }
        }
    });
}

#[test]
fn lu_of_a_long_or_wide_matrix_with_nan_is_told() {
    everywhere_and_in_workers("lu_of_a_long_or_wide_matrix_with_nan_is_told", |gpu| {
        let solve = Solve::new(gpu);
        // The last ones are looked at by more than one block.
        for (rows, columns) in
            [(7_usize, 2_usize), (2, 7), (300, 3), (3, 300), (2100, 3), (3, 2100), (70, 80)]
        {
            let number = |at: usize| ((at * 37 + 11) % 23) as f32 + 1.0;
            let fine: Vec<f32> = (0..rows * columns).map(number).collect();
            let pivots = gpu.allocate::<i64>(rows.min(columns)).unwrap();
            let a = gpu.upload(&fine).unwrap();
            let healthy = solve.lu(Matrix::new(&a, rows, columns), &pivots).submit().unwrap().wait();
            let failure = healthy.err().and_then(|error| error.solve_failure());
            assert!(!is_not_finite(failure), "{rows} x {columns}: {failure:?}");
            let middle = rows / 2 * columns + columns / 2;
            for at in [0, columns - 1, middle, (rows - 1) * columns, rows * columns - 1] {
                let mut bad = fine.clone();
                bad[at] = f32::NAN;
                let place = (at / columns).min(at % columns) as u64;
                for by_columns in [false, true] {
                    let a = gpu.upload(&bad).unwrap();
                    let matrix = Matrix::new(&a, rows, columns);
                    let matrix = if by_columns { matrix.transposed() } else { matrix };
                    let ticket = solve.lu(matrix, &pivots).submit().unwrap();
                    let failure = ticket.wait().unwrap_err().solve_failure();
                    let wanted = Some(SolveFailure::NotFinite { pivot: place });
                    assert_eq!(failure, wanted, "{rows} x {columns} at {at}");
                }
            }
        }
    });
}

#[test]
fn what_lies_between_the_rows_of_a_matrix_is_not_looked_at() {
    everywhere_and_in_workers("what_lies_between_the_rows_of_a_matrix_is_not_looked_at", |gpu| {
        let solve = Solve::new(gpu);
        let a = gpu.upload(&[2.0, 0.0, NAN, 0.0, 2.0, NAN]).unwrap();
        let pivots = gpu.allocate::<i64>(2).unwrap();
        solve.lu(Matrix::new(&a, 2, 2).leading(3), &pivots).submit().unwrap().wait().unwrap();
    });
}

#[test]
fn of_a_zero_and_a_nan_on_the_diagonal_of_factors_the_nan_is_told() {
    everywhere_and_in_workers("of_a_zero_and_a_nan_on_the_diagonal_of_factors_the_nan_is_told", |gpu| {
        let solve = Solve::new(gpu);
        let pivots = gpu.upload(&[1_i64, 2, 3]).unwrap();
        for (diagonal, place) in [([0.0, NAN, 1.0], 1), ([0.0, 0.0, INFINITY], 2), ([NAN, 0.0, 0.0], 0)] {
            let [x, y, z] = diagonal;
            let factors = gpu.upload(&[x, 0.0, 0.0, 0.0, y, 0.0, 0.0, 0.0, z]).unwrap();
            let factors = Matrix::new(&factors, 3, 3);
            let wanted = Some(SolveFailure::NotFinite { pivot: place });
            let b = gpu.upload(&[1.0; 3]).unwrap();
            let ticket = solve.lu_solve(factors, &pivots, Matrix::new(&b, 3, 1)).submit().unwrap();
            assert_eq!(ticket.wait().unwrap_err().solve_failure(), wanted, "{diagonal:?}");
            let ticket = solve.lu_solve_batched(factors, &pivots, Matrix::new(&b, 3, 1)).submit().unwrap();
            assert_eq!(ticket.wait().unwrap_err().solve_failure(), wanted, "{diagonal:?}");
        }
    });
}

/// Two matrices with two right-hand sides each, of which one has a NaN or an infinity: what was put into a column comes out of it, and it is not the matrix that is told of.
#[test]
fn a_right_hand_side_with_nan_is_no_failure_and_changes_no_other_column() {
    everywhere_and_in_workers(
        "a_right_hand_side_with_nan_is_no_failure_and_changes_no_other_column",
        |gpu| {
            let solve = Solve::new(gpu);
            let matrices = [4.0, 1.0, 1.0, 3.0, 5.0, 2.0, 2.0, 6.0_f64];
            let fine = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0_f64];
            let solved = |call: usize, sides: &[f64; 8]| -> Vec<f64> {
                let (a, b) = (gpu.upload(&matrices).unwrap(), gpu.upload(sides).unwrap());
                let pivots = gpu.allocate::<i64>(4).unwrap();
                let (of, columns) = (Matrix::new(&a, 2, 2).batch(2), Matrix::new(&b, 2, 2).batch(2));
                match call {
                    0 => solve.least_squares_batched(of, columns).submit().unwrap().wait().unwrap(),
                    1 => {
                        solve.lu_batched(of, &pivots).submit().unwrap().wait().unwrap();
                        solve.lu_solve_batched(of, &pivots, columns).submit().unwrap().wait().unwrap();
                    }
                    _ => {
                        solve.cholesky_batched(of, Triangle::Lower).submit().unwrap().wait().unwrap();
                        let call = solve.cholesky_solve_batched(of, Triangle::Lower, columns);
                        call.submit().unwrap().wait().unwrap();
                    }
                }
                b.download().unwrap()
            };
            for call in 0..3 {
                let wanted = solved(call, &fine);
                assert!(wanted.iter().all(|value| value.is_finite()));
                for value in [NAN, INFINITY, -INFINITY] {
                    // In the first column of the second matrix, whose elements are 4 and 6.
                    let mut sides = fine;
                    sides[4] = value;
                    let found = solved(call, &sides);
                    assert!(!found[4].is_finite() && !found[6].is_finite(), "{call}, {value}: {found:?}");
                    for at in [0, 1, 2, 3, 5, 7] {
                        assert_eq!(found[at], wanted[at], "{call}, {value} at {at}: {found:?}");
                    }
                }
            }
        },
    );
}

#[test]
fn a_zero_pivot_is_singular_in_one_matrix_and_in_a_batch() {
    everywhere_and_in_workers("a_zero_pivot_is_singular_in_one_matrix_and_in_a_batch", |gpu| {
        let solve = Solve::new(gpu);
        let numbers = [1.0_f64, 2.0, 0.0, 2.0, 4.0, 0.0, 0.0, 0.0, 1.0];
        let (one, many) = (gpu.upload(&numbers).unwrap(), gpu.upload(&numbers).unwrap());
        let pivots = gpu.allocate::<i64>(3).unwrap();
        let ticket = solve.lu(Matrix::new(&one, 3, 3), &pivots).submit().unwrap();
        // Rows are exchanged so that the zero comes last.
        let failure = ticket.wait().unwrap_err().solve_failure().unwrap();
        assert!(matches!(failure, SolveFailure::Singular { .. }), "{failure:?}");
        assert!(ticket.info().word().download().unwrap()[0] > 0);
        let ticket = solve.lu_batched(Matrix::new(&many, 3, 3), &pivots).submit().unwrap();
        assert_eq!(ticket.wait().unwrap_err().solve_failure().unwrap(), failure);
    });
}

#[test]
fn factors_with_a_zero_or_nan_on_their_diagonal_are_told_by_what_solves_with_them() {
    let label = "factors_with_a_zero_or_nan_on_their_diagonal_are_told_by_what_solves_with_them";
    everywhere_and_in_workers(label, |gpu| {
        let solve = Solve::new(gpu);
        for (value, wanted) in [
            (0.0, SolveFailure::Singular { pivot: 1 }),
            (-0.0, SolveFailure::Singular { pivot: 1 }),
            (NAN, SolveFailure::NotFinite { pivot: 1 }),
            (INFINITY, SolveFailure::NotFinite { pivot: 1 }),
        ] {
            let factors = gpu.upload(&[2.0, 0.0, 0.0, 0.0, value, 0.0, 0.0, 0.0, 0.0]).unwrap();
            let pivots = gpu.upload(&[1_i64, 2, 3]).unwrap();
            for columns in [1, 2] {
                let b = gpu.upload(&vec![4.0; 3 * columns]).unwrap();
                let sides = Matrix::new(&b, 3, columns);
                let ticket = solve.lu_solve(Matrix::new(&factors, 3, 3), &pivots, sides).submit().unwrap();
                let error = ticket.wait().unwrap_err();
                assert!(error.to_string().starts_with("solve.lu_solve: "), "{error}");
                assert_eq!(error.solve_failure(), Some(wanted));
                assert_eq!(ticket.info().word().download().unwrap(), [-2]);
            }
            let numbers = [2.0, 0.0, 0.0, 2.0, 2.0, 0.0, 0.0, value];
            let (factors, b) = (gpu.upload(&numbers).unwrap(), gpu.upload(&[4.0; 4]).unwrap());
            let pivots = gpu.upload(&[1_i64, 2, 1, 2]).unwrap();
            let (factors, sides) = (Matrix::new(&factors, 2, 2).batch(2), Matrix::new(&b, 2, 1).batch(2));
            let ticket = solve.lu_solve_batched(factors, &pivots, sides).submit().unwrap();
            let LibraryError::SolveBatch { matrix, count, failed, failure, .. } = ticket.wait().unwrap_err()
            else {
                panic!("no failure of a batch");
            };
            assert_eq!((matrix, count, failed, failure), (1, 2, 1, wanted));
            assert_eq!(ticket.info().words().download().unwrap(), [0, -2]);
            assert_eq!(b.download().unwrap()[..2], [2.0, 2.0], "the other matrix is solved");
        }
    });
}

#[test]
fn a_pivot_out_of_range_is_told_before_a_zero() {
    kiln::testing::check(0..1, |gpu| {
        let solve = Solve::new(gpu);
        let factors = gpu.upload(&[0.0_f32, 0.0, 0.0, 1.0])?;
        let (pivots, b) = (gpu.upload(&[1_i64, 9])?, gpu.upload(&[1.0_f32; 2])?);
        let (factors, b) = (Matrix::new(&factors, 2, 2), Matrix::new(&b, 2, 1));
        let wanted = Some(SolveFailure::PivotOutOfRange { row: 1, pivot: 9, order: 2 });
        let ticket = solve.lu_solve(factors, &pivots, b).submit().unwrap();
        assert_eq!(ticket.wait().unwrap_err().solve_failure(), wanted);
        let ticket = solve.lu_solve_batched(factors, &pivots, b).submit().unwrap();
        assert_eq!(ticket.wait().unwrap_err().solve_failure(), wanted);
        Ok(())
    })
    .unwrap();
}

#[test]
fn each_replay_of_a_graph_tells_of_its_factors() {
    everywhere_and_in_workers("each_replay_of_a_graph_tells_of_its_factors", |gpu| {
        let solve = Solve::new(gpu);
        let template = gpu.upload(&[2.0_f32, 0.0, 0.0, 2.0]).unwrap();
        let (a, pivots) = (gpu.zeros::<f32>(4).unwrap(), gpu.zeros::<i64>(2).unwrap());
        let mut graph = gpu.graph();
        graph.copy(&template, &a).unwrap();
        let (_, info) = solve.lu(Matrix::new(&a, 2, 2), &pivots).record(&mut graph).unwrap();
        let graph = match graph.build() {
            Ok(graph) => graph,
            // A version of cuSOLVER that cannot be captured says so.
            Err(error) if !is_simulated(gpu) => return println!("not recorded: {error}"),
            Err(error) => panic!("{error}"),
        };
        for (numbers, wanted) in [
            ([2.0_f32, 0.0, 0.0, 2.0], None),
            ([2.0, 0.0, 0.0, f32::NAN], Some(SolveFailure::NotFinite { pivot: 1 })),
            ([2.0, 0.0, 0.0, 0.0], Some(SolveFailure::Singular { pivot: 1 })),
            ([2.0, 0.0, 0.0, 2.0], None),
        ] {
            template.upload(&numbers).unwrap();
            graph.replay().unwrap();
            assert_eq!(info.check().err().and_then(|error| error.solve_failure()), wanted);
        }
    });
}

#[test]
fn a_matrix_that_is_not_positive_definite_is_advised_to_look_for_nan_and_infinities() {
    let gpu = DeviceRuntime::simulated(1).unwrap();
    let solve = Solve::new(&gpu);
    for numbers in
        [[1.0_f32, f32::NAN, f32::NAN, 1.0], [f32::INFINITY, 0.0, 0.0, 1.0], [1.0, 0.0, 0.0, f32::INFINITY]]
    {
        let (one, many) = (gpu.upload(&numbers).unwrap(), gpu.upload(&numbers).unwrap());
        let single = solve.cholesky(Matrix::new(&one, 2, 2), Triangle::Lower).submit().unwrap().wait();
        let batch = solve.cholesky_batched(Matrix::new(&many, 2, 2), Triangle::Lower).submit().unwrap();
        for error in [single.unwrap_err(), batch.wait().unwrap_err()] {
            let text = error.to_string();
            let advice =
                "look for NaN and infinities in the matrix, add a multiple of the identity, or use `lu`";
            assert!(text.ends_with(advice), "{text}");
        }
    }
}
