//! Library calls when a worker process dies in the middle: each is done exactly once, or reported.

use std::time::Duration;

use kiln::graph::GraphBuilder;
use kiln::recovery::{DeviceSpec, Keep, Phase, Process, Replay, Status};
use kiln::{DeviceRuntime, Stream, Ticket};
use kiln_libs::blas::{Blas, Diagonal, Matrix, Side, Triangle};
use kiln_libs::dnn::{Dnn, Tensor};
use kiln_libs::elementwise::Elementwise;
use kiln_libs::fft::Fft;
use kiln_libs::prims::{Primitives, ReduceOperator, ScanOperator};
use kiln_libs::rand::{Sampler, Uniform};
use kiln_libs::solve::Solve;
use kiln_libs::sparse::{CsrMatrix, Determinism, Sparse};

use crate::rig::{in_worker, is_simulated, process};

const PRODUCTS: usize = 1000;
/// Runs on the simulated device, each with a kill at another product; `KILN_LIBRARY_KILLS` says how many there, and on a GPU.
const KILLS: u64 = 5;

/// When the worker is killed.
#[derive(Clone, Copy, Debug)]
enum Kill {
    /// Once this product is done; all are queued then.
    AfterDone(usize),
    /// Once so many products are queued; the others are queued meanwhile.
    WhileQueueing(usize),
}

impl Kill {
    fn of(seed: u64) -> Self {
        let at = (seed as usize * 197 + 1) % PRODUCTS;
        if seed % 3 == 2 { Self::WhileQueueing(at) } else { Self::AfterDone(at) }
    }
}

/// Queues products that each add 5 to the four elements of a buffer, and kills the worker in between. Returns how many were done.
fn run(gpu: &DeviceRuntime, kill: Kill) -> usize {
    let blas = Blas::new(gpu);
    let (ones, fives) = (gpu.upload(&[1.0_f32, 0.0, 0.0, 1.0]).unwrap(), gpu.upload(&[5.0_f32; 4]).unwrap());
    let results: Vec<_> = (0..PRODUCTS).map(|at| gpu.upload(&[at as f32; 4]).unwrap()).collect();
    let square = |buffer| Matrix::new(buffer, 2, 2);
    blas.matmul(square(&ones), square(&fives), square(&results[0])).beta(1.0).load().unwrap();
    gpu.synchronize().unwrap();
    let generation = gpu.status().generation.0;
    let streams: Vec<_> = (0..4).map(|_| gpu.stream().unwrap()).collect();
    let end_worker = || gpu.isolated_device().unwrap().kill_worker();
    let submit = |at: usize| {
        if matches!(kill, Kill::WhileQueueing(queued) if queued == at) {
            end_worker();
        }
        let product = blas.matmul(square(&ones), square(&fives), square(&results[at])).beta(1.0);
        product.on(&streams[at % streams.len()]).submit()
    };
    let tickets: Vec<Option<Ticket>> = (0..PRODUCTS).map(|at| submit(at).ok()).collect();
    if let Kill::AfterDone(at) = kill {
        assert!(tickets.iter().all(Option::is_some), "nothing is refused before the worker is killed");
        tickets[at].as_ref().unwrap().wait().unwrap();
        end_worker();
    }
    await_takeover(gpu, generation);
    let mut done = 0;
    for (at, (ticket, result)) in tickets.iter().zip(&results).enumerate() {
        let is_done = ticket.as_ref().is_some_and(|ticket| ticket.wait().is_ok());
        match result.download() {
            Ok(values) if is_done => assert_eq!(values, [at as f32 + 5.0; 4], "product {at}, {kill:?}"),
            // Reported as failed, or refused: nothing was done to it.
            Ok(values) => assert_eq!(values, [at as f32; 4], "product {at}, {kill:?}"),
            Err(error) => {
                assert!(!is_done, "product {at}, {kill:?}, was done, and its result is lost: {error}")
            }
        }
        done += usize::from(is_done);
    }
    // The next worker has the operations.
    let after = gpu.upload(&[1.0_f32; 4]).unwrap();
    blas.matmul(square(&ones), square(&fives), square(&after)).beta(1.0).submit().unwrap();
    assert_eq!(after.download().unwrap(), [6.0; 4]);
    done
}

/// Waits until the device is ready again after a kill.
fn await_takeover(gpu: &DeviceRuntime, generation: u64) {
    let ready = |status: &Status| status.generation.0 > generation && status.phase() == Phase::Ready;
    let over = |status: &Status| ready(status) || status.phase().is_over();
    let status = gpu.watch().wait_until(over, Some(Duration::from_secs(60)));
    assert!(ready(&status), "{status}");
}

/// How many kills are wanted.
fn kills(otherwise: u64) -> u64 {
    std::env::var("KILN_LIBRARY_KILLS").ok().and_then(|kills| kills.parse().ok()).unwrap_or(otherwise)
}

#[test]
fn products_are_done_once_or_reported_when_a_worker_is_killed() {
    for seed in 0..kills(KILLS) {
        let (replay, standby) =
            (if seed % 2 == 0 { Replay::NotStarted } else { Replay::Never }, seed % 5 == 0);
        let gpu = in_worker(&DeviceSpec::simulated(seed), Process { replay, standby, ..process() });
        let done = run(&gpu, Kill::of(seed));
        let is_seen = matches!(Kill::of(seed), Kill::AfterDone(_));
        assert!(done > 0 || !is_seen, "seed {seed}: one was seen to be done");
    }
}

/// How many calls are queued behind a kernel that does not end.
const QUEUED: usize = 12;

/// Runs for ever, so that nothing behind it on its stream starts.
const ENDLESS: &str = "
.version 7.0
.target sm_70
.address_size 64
.visible .entry endless(.param .u64 to) {
    .reg .b32 %r<1>;
    .reg .b64 %rd<1>;
    .reg .pred %p;
    ld.param.u64 %rd0, [to];
again:
    ld.volatile.global.u32 %r0, [%rd0];
    setp.ne.u32 %p, %r0, 78;
    @%p bra again;
    ret;
}
";

/// Holds a stream with a kernel that does not end.
pub(crate) fn hold(gpu: &DeviceRuntime) -> Stream {
    gpu.synchronize().unwrap();
    let (stream, held) = (gpu.stream().unwrap(), gpu.zeros::<u32>(1).unwrap());
    gpu.synchronize().unwrap();
    let endless = gpu.kernel(ENDLESS, "endless").unwrap();
    // SAFETY: it reads one element.
    let holding =
        unsafe { gpu.launch(&endless).grid(1).block(1).on(&stream).read_write(&held).submit() }.unwrap();
    // Long enough for the worker to start it.
    assert!(!holding.wait_within(Duration::from_millis(300)).unwrap());
    stream
}

/// Kills the worker, and waits for the next one.
pub(crate) fn kill(gpu: &DeviceRuntime) {
    let generation = gpu.status().generation.0;
    gpu.isolated_device().unwrap().kill_worker();
    await_takeover(gpu, generation);
}

/// Queues calls on a stream that is held, kills the worker, and returns how many of the calls the next worker did.
fn done_again(gpu: &DeviceRuntime, submit: impl Fn(&Stream) -> Ticket) -> usize {
    let stream = hold(gpu);
    let tickets: Vec<_> = (0..QUEUED).map(|_| submit(&stream)).collect();
    kill(gpu);
    tickets.iter().filter(|ticket| ticket.wait().is_ok()).count()
}

#[test]
fn a_post_mortem_names_the_line_of_the_program() {
    let gpu = in_worker(&DeviceSpec::simulated(6), process());
    let (sampler, prims, blas) = (Sampler::new(&gpu), Primitives::new(&gpu), Blas::new(&gpu));
    let (numbers, sum) = (gpu.zeros::<f32>(64).unwrap(), gpu.zeros::<f32>(1).unwrap());
    let stream = hold(&gpu);
    let tickets = [
        sampler.draw(1).on(&stream).fill(&numbers, Uniform).unwrap(),
        prims.reduce(&numbers, ReduceOperator::Sum, &sum).on(&stream).submit().unwrap(),
        blas.scal(2.0, &sum).on(&stream).submit().unwrap(),
    ];
    kill(&gpu);
    assert!(tickets.iter().all(|ticket| ticket.wait().is_err()));
    let page = gpu.post_mortems().last().unwrap().to_string();
    assert!(page.matches("library_workers.rs").count() >= 3, "{page}");
    assert!(!page.contains("kiln-libs/src"), "{page}");
}

#[test]
fn library_calls_that_had_not_started_are_done_again_by_the_next_worker() {
    for standby in [false, true] {
        let process = Process { replay: Replay::NotStarted, standby, ..process() };
        let gpu = in_worker(&DeviceSpec::simulated(5), process);
        let blas = Blas::new(&gpu);
        let (x, y) = (gpu.upload(&[1.0_f32; 4]).unwrap(), gpu.upload(&[0.0_f32; 4]).unwrap());
        let axpy = |stream: &Stream| blas.axpy(1.0, &x, &y).on(stream).submit().unwrap();
        assert_eq!(done_again(&gpu, axpy), QUEUED);
        assert_eq!(y.download().unwrap(), [QUEUED as f32; 4]);
        // One step of a cycle of four: after all of them the vector is where it began.
        let (cycle, state) =
            (gpu.upload(&[0.0_f32, 0., 0., 1., 1., 0., 0., 0., 0., 1., 0., 0., 0., 0., 1., 0.]).unwrap(), y);
        let next = gpu.zeros::<f32>(4).unwrap();
        state.upload(&[1.0, 2.0, 3.0, 4.0]).unwrap();
        let column = |buffer| Matrix::new(buffer, 4, 1);
        let step = |stream: &Stream| {
            let square = Matrix::new(&cycle, 4, 4);
            blas.matmul(square, column(&state), column(&next)).on(stream).submit().unwrap();
            blas.matmul(square, column(&next), column(&state)).on(stream).submit().unwrap()
        };
        assert_eq!(done_again(&gpu, step), QUEUED);
        assert_eq!(state.download().unwrap(), [1.0, 2.0, 3.0, 4.0], "two steps, {QUEUED} times");
        // A call with workspace, which the next worker has again.
        let fft = Fft::new(&gpu);
        let signal = gpu.upload(&[[1.0_f64, 0.0]; 8]).unwrap();
        let transform =
            |stream: &Stream| fft.transform(&[8]).forward_in_place(&signal).on(stream).submit().unwrap();
        assert_eq!(done_again(&gpu, transform), QUEUED);
        // Two transforms multiply an even signal by its length.
        assert_eq!(signal.download().unwrap(), [[8.0_f64.powi(QUEUED as i32 / 2), 0.0]; 8]);
    }
}

/// A number, after as many roundings as there were calls. It shows whether one of them was left out or done twice.
fn counted(first: f32, step: impl Fn(f32) -> f32) -> f32 {
    (0..QUEUED).fold(first, |value, _| step(value))
}

#[test]
fn calls_of_every_kind_are_done_again_once() {
    let process = Process { replay: Replay::NotStarted, ..process() };
    let gpu = in_worker(&DeviceSpec::simulated(9), process);
    let (solve, sparse, dnn) = (Solve::new(&gpu), Sparse::new(&gpu), Dnn::new(&gpu));
    let lower = Triangle::Lower;
    // A triangular factor that halves: each solution divides by 2 * 2.
    let (factor, side) =
        (gpu.upload(&[2.0_f32, 0.0, 0.0, 2.0]).unwrap(), gpu.upload(&[1.0_f32, 3.0]).unwrap());
    let column = |buffer| Matrix::new(buffer, 2, 1);
    let solved = |stream: &Stream| {
        let call = solve.cholesky_solve(Matrix::new(&factor, 2, 2), lower, column(&side));
        call.on(stream).submit().unwrap().ticket().clone()
    };
    assert_eq!(done_again(&gpu, solved), QUEUED);
    let wanted = [1.0, 3.0].map(|first| counted(first, |value| value / 4.0));
    assert_eq!(side.download().unwrap(), wanted);
    // A batch, by a kernel of the crate.
    let batch = gpu.upload(&[1.0_f32, 3.0]).unwrap();
    let solved = |stream: &Stream| {
        let factors = Matrix::new(&factor, 2, 2).batch(1);
        solve.cholesky_solve_batched(factors, lower, column(&batch)).on(stream).submit().unwrap()
    };
    assert_eq!(done_again(&gpu, solved), QUEUED);
    assert_eq!(batch.download().unwrap(), wanted);
    // A sparse product that adds to its result.
    let sums = gpu.upload(&[0.0_f32; 2]).unwrap();
    let (matrix, ones) = (
        CsrMatrix::<f32>::from_dense(&gpu, (2, 2), &[0.0, 2.0, 3.0, 0.0]).unwrap(),
        gpu.upload(&[1.0_f32; 2]).unwrap(),
    );
    let added = |stream: &Stream| {
        let call = sparse.spmv(Determinism::RunToRun, 1.0, &matrix, &ones, Some(1.0), &sums);
        call.on(stream).submit().unwrap()
    };
    assert_eq!(done_again(&gpu, added), QUEUED);
    assert_eq!(sums.download().unwrap(), [2.0, 3.0].map(|step| counted(0.0, |value| value + step)));
    // A convolution to and fro, each time by 2 and by 1.
    let [image, other] = [1.0_f32, 0.0].map(|value| gpu.upload(&[value; 16]).unwrap());
    let [two, one] = [2.0_f32, 1.0].map(|value| gpu.upload(&[value]).unwrap());
    let tensor = |buffer| Tensor::new(buffer, [1, 1, 4, 4]);
    let filter = |buffer| Tensor::new(buffer, [1, 1, 1, 1]);
    let convolved = |stream: &Stream| {
        dnn.convolution(tensor(&image), filter(&two), tensor(&other)).on(stream).submit().unwrap();
        dnn.convolution(tensor(&other), filter(&one), tensor(&image)).on(stream).submit().unwrap()
    };
    assert_eq!(done_again(&gpu, convolved), QUEUED);
    assert_eq!(image.download().unwrap(), [counted(1.0, |value| 2.0 * value); 16]);
    // A rotation of a vector by a sort: keys that are each time another order.
    let (prims, elements) = (Primitives::new(&gpu), Elementwise::new(&gpu));
    let total = gpu.upload(&[1.0_f32]).unwrap();
    let doubled = gpu.upload(&[0.0_f32; 2]).unwrap();
    let reduced = |stream: &Stream| {
        let both = doubled.view(..2).unwrap();
        elements.affine(1.0, &total, 0.0, &both.view(..1).unwrap()).on(stream).submit().unwrap();
        elements.affine(1.0, &total, 0.0, &both.view(1..).unwrap()).on(stream).submit().unwrap();
        prims.reduce(&both, ReduceOperator::Sum, &total).on(stream).submit().unwrap()
    };
    assert_eq!(done_again(&gpu, reduced), QUEUED);
    assert_eq!(total.download().unwrap(), [counted(1.0, |value| 2.0 * value)]);
}

#[test]
fn calls_of_every_kind_are_reported_where_none_is_done_again() {
    let gpu = in_worker(&DeviceSpec::simulated(10), Process { replay: Replay::Never, ..process() });
    let (solve, sparse, dnn) = (Solve::new(&gpu), Sparse::new(&gpu), Dnn::new(&gpu));
    let (fft, prims, blas) = (Fft::new(&gpu), Primitives::new(&gpu), Blas::new(&gpu));
    let [a, b, c] = [2.0_f32, 3.0, 4.0].map(|value| gpu.upload(&[value; 16]).unwrap());
    let (values, tau) = (gpu.upload(&[1.0_f32; 4]).unwrap(), gpu.upload(&[1.0_f32; 4]).unwrap());
    let csr = CsrMatrix::<f32>::from_dense(&gpu, (4, 4), &[1.0; 16]).unwrap();
    let signal = gpu.upload(&[[1.0_f32, 2.0]; 8]).unwrap();
    let filter = gpu.upload(&[2.0_f32]).unwrap();
    let square = |buffer| Matrix::new(buffer, 4, 4);
    let image = |buffer| Tensor::new(buffer, [1, 1, 4, 4]);
    let stream = hold(&gpu);
    let tickets: Vec<(&str, Ticket)> = vec![
        ("blas.trsm", {
            let kind = (Triangle::Lower, Diagonal::Stored);
            blas.trsm(Side::Left, 1.0, square(&a), kind, square(&b)).on(&stream).submit().unwrap()
        }),
        ("solve.qr", {
            let call = solve.qr(square(&c).transposed(), &tau).on(&stream);
            call.submit().unwrap().ticket().clone()
        }),
        ("solve.eigenvalues_batched", {
            let call = solve.eigenvalues_batched(square(&a), Triangle::Lower, &values).on(&stream);
            call.submit().unwrap().ticket().clone()
        }),
        ("sparse.spmv", {
            let call = sparse.spmv(Determinism::RunToRun, 1.0, &csr, &values, None, &tau).on(&stream);
            call.submit().unwrap()
        }),
        ("fft.transform", fft.transform(&[8]).forward_in_place(&signal).on(&stream).submit().unwrap()),
        ("dnn.convolution", {
            let filter = Tensor::new(&filter, [1, 1, 1, 1]);
            dnn.convolution(image(&a), filter, image(&b)).on(&stream).submit().unwrap()
        }),
        ("prims.scan_inclusive", {
            let call = prims.scan_inclusive(&a, ScanOperator::Sum, &c).on(&stream);
            call.submit().unwrap()
        }),
    ];
    kill(&gpu);
    for (call, ticket) in &tickets {
        let error = ticket.wait().unwrap_err();
        assert!(error.is_lost(), "{call}: {error}");
        assert_eq!(ticket.wait().unwrap_err().to_string(), error.to_string(), "{call} is told in one way");
    }
    // The next worker has the operations.
    let (column, length) = (gpu.upload(&[3.0_f32, 4.0]).unwrap(), gpu.zeros::<f32>(1).unwrap());
    let call = solve.qr(Matrix::new(&column, 1, 2).transposed(), &length);
    call.submit().unwrap().wait().unwrap();
    assert!((column.download().unwrap()[0].abs() - 5.0).abs() < 1e-5);
    let [x, y] = [1.0_f32, 2.0].map(|value| gpu.upload(&[value; 4]).unwrap());
    sparse.spmv(Determinism::RunToRun, 1.0, &csr, &x, Some(1.0), &y).submit().unwrap();
    assert_eq!(y.download().unwrap(), [6.0; 4]);
}

/// Replays a graph of a call that needs workspace, and kills the worker while replays are queued; then the same graph once more. Without the mark on its
/// workspace, the graph would name a buffer that was lost. `prepare` brings the operands back, and `judge` looks at the result of a replay.
fn replay_after_a_kill(gpu: &DeviceRuntime, graph: GraphBuilder, prepare: impl Fn(), judge: impl Fn(&str)) {
    let graph = graph.build().unwrap();
    graph.replay().unwrap();
    judge("before");
    for round in ["first", "second", "third"] {
        let generation = gpu.status().generation.0;
        let last = (0..50).map(|_| graph.replay().unwrap()).last().unwrap();
        gpu.isolated_device().unwrap().kill_worker();
        await_takeover(gpu, generation);
        assert!(
            !is_simulated(gpu) || last.wait().is_err(),
            "{round} kill: the worker was killed too late to show anything"
        );
        prepare();
        graph.replay().unwrap();
        judge(round);
    }
}

/// A transform, whose library asks for workspace.
fn transforms_after_a_kill(gpu: &DeviceRuntime) {
    let contents: Vec<[f64; 2]> = (0..1000).map(|at| [f64::from(at % 17), f64::from(at % 5)]).collect();
    let spectrum = gpu.upload(&contents).unwrap();
    Fft::new(gpu).transform(&[1000]).forward_in_place(&spectrum).submit().unwrap();
    let expected = spectrum.download().unwrap();
    // What the graph leaves behind is the program's to bring back.
    spectrum.heal_with(&contents).unwrap();
    let prepare = || spectrum.upload(&contents).map(drop).unwrap();
    prepare();
    let mut graph = gpu.graph();
    Fft::new(gpu).transform(&[1000]).forward_in_place(&spectrum).record(&mut graph).unwrap();
    let judge = |when: &str| assert_eq!(spectrum.download().unwrap(), expected, "{when}");
    replay_after_a_kill(gpu, graph, prepare, judge);
}

/// A sort, which keeps its counts and half of its passes in scratch memory of the graph.
fn sorts_after_a_kill(gpu: &DeviceRuntime) {
    let keys = gpu.upload(&(0..5000).rev().collect::<Vec<u32>>()).unwrap();
    let sorted = gpu.zeros(5000).unwrap();
    sorted.heal_with(&[0; 5000]).unwrap();
    let mut graph = gpu.graph();
    Primitives::new(gpu).sort(&keys, &sorted).record(&mut graph).unwrap();
    let judge =
        |when: &str| assert_eq!(sorted.download().unwrap(), (0..5000).collect::<Vec<u32>>(), "{when}");
    replay_after_a_kill(gpu, graph, || {}, judge);
}

#[test]
fn a_graph_with_a_transform_is_replayed_after_its_worker_was_killed() {
    transforms_after_a_kill(&in_worker(&DeviceSpec::simulated(11), process()));
}

#[test]
fn a_graph_with_a_sort_is_replayed_after_its_worker_was_killed() {
    sorts_after_a_kill(&in_worker(&DeviceSpec::simulated(11), process()));
}

/// A handle keeps the workspace of a stream for the next call. Where nothing outlives a worker, it is none for a call of the next.
#[test]
fn a_workspace_that_went_with_its_worker_is_not_used_again() {
    let process = Process { on_loss: Keep::Nothing, ..process() };
    let gpu = in_worker(&DeviceSpec::simulated(15), process);
    let fft = Fft::new(&gpu);
    for round in 0..3 {
        let signal = gpu.upload(&[[1.0_f64, 0.0]; 8]).unwrap();
        assert!(fft.transform(&[8]).forward_in_place(&signal).load().unwrap() > 0);
        fft.transform(&[8]).forward_in_place(&signal).submit().unwrap().wait().unwrap();
        let found = signal.download().unwrap();
        assert_eq!((found[0], found[1]), ([8.0, 0.0], [0.0, 0.0]), "round {round}");
        kill(&gpu);
    }
}

#[test]
fn a_graph_of_library_calls_on_a_gpu_is_replayed_after_its_worker_was_killed() {
    let label = "a_graph_of_library_calls_on_a_gpu_is_replayed_after_its_worker_was_killed";
    match kiln::probe::gpu_for_test(label).unwrap() {
        kiln::probe::TestGate::Ready(_) => {
            transforms_after_a_kill(&in_worker(&DeviceSpec::cuda(0), process()));
            sorts_after_a_kill(&in_worker(&DeviceSpec::cuda(0), process()));
        }
        kiln::probe::TestGate::Skipped(absence) => println!("skipped: {absence}"),
    }
}

#[test]
fn products_on_a_gpu_are_done_once_or_reported_when_a_worker_is_killed() {
    let label = "products_on_a_gpu_are_done_once_or_reported_when_a_worker_is_killed";
    if let kiln::probe::TestGate::Skipped(absence) = kiln::probe::gpu_for_test(label).unwrap() {
        println!("skipped: {absence}");
        return;
    }
    for seed in 0..kills(4) {
        let process = Process { replay: Replay::NotStarted, standby: seed % 2 == 1, ..process() };
        let done = run(&in_worker(&DeviceSpec::cuda(0), process), Kill::of(seed));
        println!("{:?}: {done} of {PRODUCTS} products were done, the others reported", Kill::of(seed));
    }
}
