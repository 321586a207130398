//! Matrices that have no solution, calls that cannot be, and what the simulated device finds.

use std::sync::Arc;

use kiln::memory::MemoryConfig;
use kiln::recovery::DeviceSpec;
use kiln::{DeviceRuntime, RuntimeConfig};
use kiln_driver::{Code, Refusal};
use kiln_libs::solve::{Matrix, Side, Solve, SolveFailure, SolveTicket, Triangle};
use kiln_libs::sparse::{CsrMatrix, Diagonal, Sparse};
use kiln_libs::{LibraryError, Result};
use kiln_sim::{FaultPlan, Machine, MachineConfig, PlannedFault, PtxEngine};

use crate::numbers::made_up;
use crate::rig::{everywhere_and_in_workers, is_simulated};

#[track_caller]
fn failure(ticket: SolveTicket) -> SolveFailure {
    ticket.wait().unwrap_err().solve_failure().unwrap()
}

#[test]
fn a_matrix_without_factors_is_told_when_its_ticket_is_waited_for() {
    everywhere_and_in_workers("a_matrix_without_factors_is_told_when_its_ticket_is_waited_for", |gpu| {
        let solve = Solve::new(gpu);
        let n = 20;
        // The identity, but for one negative and one zero.
        let diagonal = |value: f64, at: usize| {
            let place = |place: usize| match (place / n == place % n, place / n == at) {
                (true, true) => value,
                (true, false) => 1.0,
                _ => 0.0,
            };
            gpu.upload(&(0..n * n).map(place).collect::<Vec<f64>>()).unwrap()
        };
        let indefinite = diagonal(-1.0, 16);
        let ticket = solve.cholesky(Matrix::new(&indefinite, n, n), Triangle::Lower).submit().unwrap();
        let error = ticket.wait().unwrap_err();
        assert_eq!(error.solve_failure(), Some(SolveFailure::NotPositiveDefinite { order: 17 }));
        let text = "solve.cholesky: the matrix is not positive definite: its leading minor of order 17 is not positive; look for NaN and infinities in the matrix, add a multiple of the identity, or use `lu`";
        assert_eq!(error.to_string(), text);
        assert_eq!(ticket.info().word().download().unwrap(), [17]);
        ticket.ticket().wait().unwrap();

        let (singular, pivots) = (diagonal(0.0, 4), gpu.allocate::<i64>(n).unwrap());
        let ticket = solve.lu(Matrix::new(&singular, n, n), &pivots).submit().unwrap();
        assert_eq!(failure(ticket), SolveFailure::Singular { pivot: 4 });
        // The device is none the worse for it.
        let fine = diagonal(1.0, 0);
        solve.cholesky(Matrix::new(&fine, n, n), Triangle::Upper).submit().unwrap().wait().unwrap();
    });
}

#[test]
fn a_nan_is_told_by_the_simulated_device() {
    kiln::testing::check(0..1, |gpu| {
        let solve = Solve::new(gpu);
        let nan = || gpu.upload(&[1.0_f32, f32::NAN, f32::NAN, 1.0]).unwrap();
        let (values, a) = (gpu.allocate::<f32>(2)?, nan());
        let ticket = solve.eigenvalues(Matrix::new(&a, 2, 2), Triangle::Lower, &values).submit().unwrap();
        assert_eq!(failure(ticket), SolveFailure::NotConverged);
        assert!(values.download()?.iter().all(|value| value.is_nan()));
        let a = nan();
        let ticket = solve.singular_values(Matrix::new(&a, 2, 2), &values).submit().unwrap();
        assert_eq!(failure(ticket), SolveFailure::NotConverged);
        let a = nan();
        let ticket = solve.cholesky(Matrix::new(&a, 2, 2), Triangle::Lower).submit().unwrap();
        assert_eq!(failure(ticket), SolveFailure::NotPositiveDefinite { order: 2 });
        Ok(())
    })
    .unwrap();
}

/// The words of a refusal that is about arguments.
#[track_caller]
fn refused<T: std::fmt::Debug>(answer: Result<T>) -> String {
    let error = answer.unwrap_err();
    assert!(matches!(error, LibraryError::Argument { .. }), "{error}");
    error.to_string()
}

#[test]
fn calls_that_do_not_fit_are_refused_before_anything_is_queued() {
    let gpu = DeviceRuntime::simulated(1).unwrap();
    let solve = Solve::new(&gpu);
    let a = gpu.upload(&[2.0_f32; 12]).unwrap();
    let (b, c) = (gpu.upload(&[3.0_f32; 12]).unwrap(), gpu.upload(&[3.0_f32; 12]).unwrap());
    let pivots = gpu.zeros::<i64>(2).unwrap();
    let before = gpu.bytes_outstanding();
    let lower = Triangle::Lower;
    let text = refused(solve.cholesky(Matrix::new(&a, 3, 4), lower).submit());
    assert_eq!(
        text,
        "solve.cholesky: `a` is 3 x 4, and must be square; use `least_squares` for other shapes"
    );
    let text = refused(solve.eigenvalues(Matrix::new(&a, 3, 4), lower, &b).submit());
    let hint = "use `singular_values` or `svd` for other shapes";
    assert_eq!(text, format!("solve.eigenvalues: `a` is 3 x 4, and must be square; {hint}"));
    let text = refused(solve.eigenvectors(Matrix::new(&a, 3, 4).transposed(), lower, &b).submit());
    assert_eq!(text, format!("solve.eigenvectors: `a` is 4 x 3, and must be square; {hint}"));
    let text = refused(solve.cholesky(Matrix::new(&a, 2, 2).batch(3), lower).submit());
    assert!(text.contains("a batch of 3 matrices; use `cholesky_batched`"), "{text}");
    let text = refused(solve.lu(Matrix::new(&a, 2, 2).batch(3), &pivots).submit());
    assert_eq!(text, "solve.lu: a batch of 3 matrices; use `lu_batched`");
    let text = refused(solve.cholesky(Matrix::new(&a, 3, 3).leading(2), lower).submit());
    assert!(text.contains("`a` has a leading dimension of 2 for rows of 3 elements"), "{text}");
    let text = refused(solve.cholesky(Matrix::new(&a, 0, 0), lower).submit());
    assert!(text.contains("solve.cholesky: `a` is 0 x 0; "), "{text}");
    let text = refused(solve.cholesky(Matrix::new(&a, 4, 4), lower).submit());
    assert!(text.contains("`a` has 48 bytes and must have 64"), "{text}");
    let text = refused(solve.cholesky_solve(Matrix::new(&a, 3, 3), lower, Matrix::new(&b, 4, 1)).submit());
    assert!(text.contains("`b` is 4 x 1, and must be 3 x 1"), "{text}");
    let text = refused(solve.cholesky_solve(Matrix::new(&a, 3, 3), lower, Matrix::new(&b, 3, 5)).submit());
    assert!(text.contains("`b` has 12 elements and must have 15"), "{text}");
    let text = refused(solve.cholesky_solve(Matrix::new(&a, 2, 2), lower, Matrix::new(&a, 2, 2)).submit());
    assert!(text.contains("`factor` and `b` share memory"), "{text}");
    let text = refused(solve.cholesky_solve(Matrix::new(&a, 3, 3), lower, Matrix::new(&a, 3, 1)).submit());
    assert!(text.contains("`factor` and `b` share memory"), "{text}");
    let text = refused(solve.lu(Matrix::new(&a, 3, 3), &pivots).submit());
    assert!(text.contains("`pivots` has 2 elements and must have 3"), "{text}");
    let text = refused(solve.qr(Matrix::new(&a, 3, 3), &b).submit());
    assert!(text.contains("`a` is stored row after row"), "{text}");
    let by_columns = Matrix::new(&a, 3, 3).transposed();
    let text = refused(solve.apply_q(Side::Left, by_columns, &b, Matrix::new(&c, 2, 4)).submit());
    assert!(text.contains("factors of 3 x 3 and c of 2 x 4"), "{text}");
    let wide = Matrix::new(&a, 4, 3).transposed();
    let text = refused(solve.least_squares(wide, Matrix::new(&b, 3, 1)).submit());
    assert!(text.contains("more unknowns than equations; use `svd`"), "{text}");
    let (rows, vt) = (Matrix::new(&b, 3, 3), Matrix::new(&c, 3, 3));
    let text = refused(solve.svd(Matrix::new(&a, 3, 3), &b, rows, vt).submit());
    assert!(text.contains("`u` is stored row after row"), "{text}");
    let text = refused(solve.svd(Matrix::new(&a, 3, 3), &b, rows.transposed(), vt.transposed()).submit());
    assert!(text.contains("`vt` is stored column after column"), "{text}");
    let large = 1_usize << 31;
    let text = refused(solve.singular_values(Matrix::new(&a, large, 1), &b).submit());
    assert!(
        text.contains("`a` is 2147483648 x 1 with a leading dimension of 1; use sizes below 2^31"),
        "{text}"
    );
    let text = refused(solve.cholesky(Matrix::new(&a, large, large), lower).submit());
    assert!(text.contains("`a` has 2^59 elements or more"), "{text}");
    assert_eq!((a.download().unwrap(), b.download().unwrap()), (vec![2.0; 12], vec![3.0; 12]));
    gpu.synchronize().unwrap();
    gpu.reap_pending().unwrap();
    assert_eq!(gpu.bytes_outstanding(), before, "nothing is held");
}

#[test]
fn least_squares_are_checked_before_anything_is_allocated_for_them() {
    // What a wrong size asks for does not fit this limit, so that an allocation would be told instead of the size.
    let memory = MemoryConfig { limit_bytes: Some(4 << 20), ..MemoryConfig::default() };
    let config = RuntimeConfig { memory, ..RuntimeConfig::default() };
    let gpu = DeviceRuntime::open(&DeviceSpec::simulated(1), config).unwrap();
    let solve = Solve::new(&gpu);
    let (a, b) = (gpu.upload(&[2.0_f32; 12]).unwrap(), gpu.upload(&[3.0_f32; 12]).unwrap());
    let least_squares = |rows: usize, columns: usize| {
        let a = Matrix::new(&a, columns, rows).transposed();
        refused(solve.least_squares(a, Matrix::new(&b, rows, 1)).submit())
    };
    let text = least_squares(1 << 29, 1 << 29);
    assert!(text.contains("`a` has 48 bytes and must have 1152921504606846976"), "{text}");
    let same = solve.least_squares(Matrix::new(&a, 2, 3).transposed(), Matrix::new(&a, 3, 1));
    let text = refused(same.submit());
    assert!(text.contains("share memory"), "{text}");
}

#[test]
fn waiting_for_a_lost_device_names_the_call_and_the_next_step() {
    let told = |wait: &dyn Fn(&DeviceRuntime) -> Result<()>, call: &str| {
        // Its first kernel loses the device; batches and triangles run kernels of this crate.
        let fault = PlannedFault::Sticky { launch: 1, code: Code::ILLEGAL_ADDRESS };
        let config = MachineConfig::seeded(1).faults(FaultPlan::none().on(0, fault));
        let machine = Machine::new(config.engine(Arc::new(PtxEngine::default())));
        let gpu = DeviceRuntime::from_driver(machine.device(0).unwrap(), RuntimeConfig::default()).unwrap();
        let error = wait(&gpu).unwrap_err();
        let text = error.to_string();
        let wanted = format!(
            "{call}: simulated device 0: the device takes no more work; open another runtime and upload the data to it; the fault was: "
        );
        assert!(text.starts_with(&wanted), "{text}");
        assert_eq!(text.matches("the device is lost").count(), 1, "{text}");
        assert!(error.runtime().is_some_and(kiln::Error::is_lost), "{text}");
    };
    let square = |gpu: &DeviceRuntime| gpu.upload(&[4.0_f32, 2.0, 2.0, 5.0]).unwrap();
    let lower = Triangle::Lower;
    let cholesky =
        |gpu: &DeviceRuntime| Solve::new(gpu).cholesky(Matrix::new(&square(gpu), 2, 2), lower).submit();
    told(&|gpu| cholesky(gpu)?.wait(), "solve.cholesky");
    told(
        &|gpu| {
            let ticket = cholesky(gpu)?;
            let _ = gpu.synchronize();
            ticket.info().check()
        },
        "solve.cholesky",
    );
    told(
        &|gpu| Solve::new(gpu).cholesky_batched(Matrix::new(&square(gpu), 2, 2), lower).submit()?.wait(),
        "solve.cholesky_batched",
    );
    told(
        &|gpu| {
            let a: CsrMatrix<f32> = CsrMatrix::from_dense(gpu, (2, 2), &[1.0, 0.0, 0.0, 1.0])?;
            let b = square(gpu);
            let sides = Matrix::new(&b, 2, 2);
            Sparse::new(gpu).triangular_solve(lower, Diagonal::Stored, 1.0, &a, sides, sides).submit()?.wait()
        },
        "sparse.triangular_solve",
    );
}

#[test]
fn factorisations_are_replayed_and_iterations_are_refused_in_a_graph() {
    everywhere_and_in_workers("factorisations_are_replayed_and_iterations_are_refused_in_a_graph", |gpu| {
        let solve = Solve::new(gpu);
        let template = gpu.upload(&[4.0_f32, 2.0, 2.0, 5.0]).unwrap();
        let (a, b) = (gpu.zeros::<f32>(4).unwrap(), gpu.upload(&[8.0_f32, 12.0]).unwrap());
        let square = Matrix::new(&a, 2, 2);
        let mut graph = gpu.graph();
        graph.copy(&template, &a).unwrap();
        let (_, info) = solve.cholesky(square, Triangle::Lower).record(&mut graph).unwrap();
        solve.cholesky_solve(square, Triangle::Lower, Matrix::new(&b, 2, 1)).record(&mut graph).unwrap();
        let refused = solve.eigenvalues(square, Triangle::Lower, &b).record(&mut graph).unwrap_err();
        assert!(refused.to_string().contains("no graph can hold it"), "{refused}");
        let graph = match graph.build() {
            Ok(graph) => graph,
            // A version of cuSOLVER that cannot be captured says so.
            Err(error) if !is_simulated(gpu) => {
                let driver = error.driver().unwrap();
                let is_refused =
                    matches!(driver.refusal(), Some(Refusal::Library { library: "cuSOLVER", .. }));
                assert!(is_refused || driver.is_unsupported(), "{error}");
                return println!("not recorded: {error}");
            }
            Err(error) => panic!("{error}"),
        };
        graph.replay().unwrap();
        info.check().unwrap();
        let first: Vec<f32> = b.download().unwrap();
        assert!((first[0] - 1.0).abs() < 1e-6 && (first[1] - 2.0).abs() < 1e-6, "{first:?}");
        graph.replay().unwrap();
        let second = b.download().unwrap();
        // The solution of A x = (1, 2): (1/16, 6/16).
        assert!((second[0] - 0.0625).abs() < 1e-6 && (second[1] - 0.375).abs() < 1e-6, "{second:?}");
        // The word tells of the last replay.
        template.upload(&[-4.0_f32, 2.0, 2.0, 5.0]).unwrap();
        graph.replay().unwrap();
        let failure = info.check().unwrap_err().solve_failure();
        assert_eq!(failure, Some(SolveFailure::NotPositiveDefinite { order: 1 }));
    });
}

#[test]
fn reading_what_was_never_written_is_found_in_a_solver() {
    let wrong = |gpu: &DeviceRuntime| {
        let solve = Solve::new(gpu);
        let a = gpu.allocate::<f32>(16)?;
        let ticket = solve.cholesky(Matrix::new(&a, 4, 4), Triangle::Lower).submit();
        ticket.map(drop).map_err(kiln::Error::other)?;
        gpu.synchronize()
    };
    let failure = kiln::testing::check(0..1, wrong).unwrap_err().to_string();
    assert!(failure.contains("solve.potrf") && failure.contains("never written"), "{failure}");
}

#[test]
fn workspace_and_info_words_are_given_back() {
    kiln::testing::check(0..1, |gpu| {
        let solve = Solve::new(gpu);
        let a = gpu.upload(&made_up::<f64>(1, 64))?;
        let (b, before) = (gpu.zeros::<f64>(8)?, gpu.bytes_outstanding());
        let matrix = Matrix::new(&a, 8, 8).transposed();
        assert_eq!(solve.qr(matrix, &b).load().unwrap(), 512);
        for _ in 0..5 {
            let _ = solve.qr(matrix, &b).submit().unwrap();
            let _ = solve.least_squares(matrix, Matrix::new(&b, 8, 1)).submit().unwrap();
        }
        drop(solve);
        gpu.synchronize()?;
        gpu.reap_pending()?;
        assert_eq!(gpu.bytes_outstanding(), before);
        Ok(())
    })
    .unwrap();
}

/// The bytes of several results, as one number.
fn digest(gpu: &DeviceRuntime) -> u64 {
    let solve = Solve::new(gpu);
    let n = 12;
    let upload = || gpu.upload(&made_up::<f32>(1, n * n)).unwrap();
    let square = |buffer| Matrix::new(buffer, n, n);
    let (lu, pivots) = (upload(), gpu.allocate::<i64>(n).unwrap());
    solve.lu(square(&lu), &pivots).submit().unwrap().wait().unwrap();
    let (qr, tau) = (upload(), gpu.allocate::<f32>(n).unwrap());
    solve.qr(square(&qr).transposed(), &tau).submit().unwrap().wait().unwrap();
    let (vectors, values) = (upload(), gpu.allocate::<f32>(n).unwrap());
    solve.eigenvectors(square(&vectors), Triangle::Lower, &values).submit().unwrap().wait().unwrap();
    let (a, s) = (upload(), gpu.allocate::<f32>(n).unwrap());
    let (u, vt) = (upload(), upload());
    solve.svd(square(&a), &s, square(&u).transposed(), square(&vt)).submit().unwrap().wait().unwrap();
    let buffers = [&lu, &qr, &tau, &vectors, &values, &s, &u, &vt];
    let numbers = buffers.into_iter().flat_map(|buffer| buffer.download().unwrap());
    numbers.fold(0xcbf2_9ce4_8422_2325, |hash, value: f32| {
        (hash ^ u64::from(value.to_bits())).wrapping_mul(0x0100_0000_01b3)
    })
}

#[test]
fn the_simulated_solvers_compute_the_same_bytes_everywhere() {
    let first = digest(&DeviceRuntime::simulated(1).unwrap());
    assert_eq!(digest(&DeviceRuntime::simulated(2).unwrap()), first);
    // Made on x86-64; every other machine must give the same.
    assert_eq!(first, DIGEST, "{first:#x}");
}

const DIGEST: u64 = 0x5808_5555_7310_2d82;
