//! Library calls that need more memory than a budget has: refused with what holds it, before anything is queued.

use kiln::memory::{AllocTag, MemoryConfig};
use kiln::probe::TestGate;
use kiln::recovery::DeviceSpec;
use kiln::telemetry::Count;
use kiln::{DeviceRuntime, GpuRef, RuntimeConfig};
use kiln_libs::blas::{Blas, Diagonal, Matrix, Side, Triangle};
use kiln_libs::dnn::{Dnn, Tensor};
use kiln_libs::fft::Fft;
use kiln_libs::prims::Primitives;
use kiln_libs::solve::Solve;
use kiln_libs::sparse::{CsrMatrix, Determinism, Sparse};

const MIB: usize = 1 << 20;
const BUDGET: usize = 64 * MIB;
/// A signal of 48 MiB, which takes as much workspace again: 96 MiB together.
const SIGNAL: usize = 48 * MIB / 8;

fn budgeted(device: &DeviceSpec) -> DeviceRuntime {
    let memory = MemoryConfig { limit_bytes: Some(BUDGET as u64), ..MemoryConfig::default() };
    DeviceRuntime::open(device, RuntimeConfig { memory, ..RuntimeConfig::default() }).unwrap()
}

fn on_each_device(label: &str, test: impl Fn(&DeviceRuntime)) {
    test(&budgeted(&DeviceSpec::simulated(1)));
    match kiln::probe::gpu_for_test(label).unwrap() {
        TestGate::Ready(_) => test(&budgeted(&DeviceSpec::cuda(0))),
        TestGate::Skipped(absence) => println!("skipped: {absence}"),
    }
}

fn signals(gpu: &DeviceRuntime, len: usize) -> GpuRef<[f32; 2]> {
    let tag = AllocTag::new("signals").unwrap();
    let signals = gpu.allocate_tagged(gpu.main_stream(), len, tag).unwrap();
    signals.fill([1.0, 0.0]).unwrap();
    signals
}

/// The transform of a constant: its length first, then zeros.
fn check_works(gpu: &DeviceRuntime, fft: &Fft) {
    let small = signals(gpu, 1000);
    fft.transform(&[1000]).forward_in_place(&small).submit().unwrap();
    let found = small.download().unwrap();
    assert!((found[0][0] - 1000.0).abs() < 0.01 && found[1..].iter().all(|[re, im]| re.hypot(*im) < 0.01));
}

#[test]
fn a_call_over_the_budget_is_refused_with_the_sum_of_each_tag() {
    on_each_device("a_call_over_the_budget_is_refused_with_the_sum_of_each_tag", |gpu| {
        let (fft, signal) = (Fft::new(gpu), signals(gpu, SIGNAL));
        let transform = || fft.transform(&[SIGNAL]).forward_in_place(&signal);
        let workspace = transform().load().unwrap();
        assert!(workspace as usize + 48 * MIB > BUDGET, "a workspace of {workspace} bytes fits");
        gpu.synchronize().unwrap();
        let (held, submitted) = (gpu.bytes_outstanding(), gpu.telemetry().snapshot().count(Count::Launches));
        for round in 0..3 {
            let error = transform().submit().unwrap_err();
            let text = error.to_string();
            let runtime = error.runtime().unwrap();
            assert!(runtime.is_oom() && !runtime.is_sticky(), "round {round}: {text}");
            assert!(text.contains(&format!("{workspace} bytes were asked for")), "{text}");
            assert!(text.contains(&format!("of a limit of {BUDGET}")), "{text}");
            assert!(text.contains(&format!("signals {}", 48 * MIB)), "{text}");
            let mut graph = gpu.graph();
            assert!(transform().record(&mut graph).unwrap_err().runtime().unwrap().is_oom());
            assert_eq!(graph.len(), 0, "the graph is unchanged");
        }
        gpu.synchronize().unwrap();
        assert_eq!(gpu.bytes_outstanding(), held, "nothing is held");
        assert_eq!(gpu.telemetry().snapshot().count(Count::Launches), submitted, "nothing was queued");
        assert!(signal.download().unwrap().iter().all(|value| *value == [1.0, 0.0]), "nothing was written");
        check_works(gpu, &fft);
    });
}

#[test]
fn a_graph_whose_workspaces_are_over_the_budget_is_refused_with_their_sum() {
    on_each_device("a_graph_whose_workspaces_are_over_the_budget_is_refused_with_their_sum", |gpu| {
        // Two million numbers of 8 bytes.
        let (fft, signal) = (Fft::new(gpu), signals(gpu, 2 * MIB));
        let transform = || fft.transform(&[2 * MIB]).forward_in_place(&signal);
        let workspace = transform().load().unwrap() as usize;
        assert!(workspace >= MIB, "a workspace of {workspace} bytes");
        let (mut graph, most) = (gpu.graph(), BUDGET / workspace + 1);
        let refused = (0..most).find_map(|_| transform().record(&mut graph).err()).unwrap();
        let (nodes, text) = (graph.len(), refused.to_string());
        assert!(nodes < most && refused.runtime().unwrap().is_oom(), "{text}");
        assert!(text.contains(&format!("of a limit of {BUDGET}")), "{text}");
        assert!(text.contains(&format!("signals {}", 16 * MIB)), "{text}");
        if nodes > 0 {
            assert!(text.contains(&format!("library {}", nodes * workspace)), "{nodes} nodes: {text}");
        }
        drop(graph);
        gpu.synchronize().unwrap();
        gpu.reap_pending().unwrap();
        transform().submit().unwrap();
        let first = signal.view(..2).unwrap().download().unwrap();
        assert_eq!(first, [[2.0 * MIB as f32, 0.0], [0.0, 0.0]]);
        check_works(gpu, &fft);
    });
}

/// Queues a transform of so many numbers, and gives the bytes of its workspace.
fn transform(gpu: &DeviceRuntime, fft: &Fft, len: usize) -> usize {
    let signal = signals(gpu, len);
    let workspace = fft.transform(&[len]).forward_in_place(&signal).load().unwrap();
    fft.transform(&[len]).forward_in_place(&signal).submit().unwrap().wait().unwrap();
    workspace as usize
}

fn held(gpu: &DeviceRuntime) -> usize {
    gpu.synchronize().unwrap();
    gpu.reap_pending().unwrap();
    gpu.bytes_outstanding() as usize
}

#[test]
fn a_workspace_is_kept_for_the_next_call_until_its_handle_is_dropped() {
    on_each_device("a_workspace_is_kept_for_the_next_call_until_its_handle_is_dropped", |gpu| {
        let (fft, before) = (Fft::new(gpu), held(gpu));
        let workspace = transform(gpu, &fft, 2 * MIB);
        let kept = held(gpu) - before;
        assert!(kept >= workspace && workspace >= MIB, "{kept} bytes are held for {workspace}");
        for len in [2 * MIB, MIB, 1000] {
            transform(gpu, &fft, len);
            assert_eq!(held(gpu) - before, kept, "the same one after {len} numbers");
        }
        drop(fft);
        assert_eq!(held(gpu), before);
    });
}

#[test]
fn a_kept_workspace_that_is_too_small_is_replaced() {
    on_each_device("a_kept_workspace_that_is_too_small_is_replaced", |gpu| {
        let (fft, before) = (Fft::new(gpu), held(gpu));
        let small = transform(gpu, &fft, 1000);
        let kept = held(gpu) - before;
        let large = transform(gpu, &fft, 2 * MIB);
        assert!(large > small && large > kept, "{large} bytes after {small} of {kept} that are kept");
        let kept = held(gpu) - before;
        assert!((large..large + small + MIB).contains(&kept), "{kept} bytes are kept for {large}");
    });
}

#[test]
fn kept_workspaces_make_room_when_memory_is_short() {
    on_each_device("kept_workspaces_make_room_when_memory_is_short", |gpu| {
        let (fft, before) = (Fft::new(gpu), held(gpu));
        transform(gpu, &fft, 2 * MIB);
        assert!(held(gpu) - before >= MIB, "nothing is kept");
        let all = gpu.allocate::<u8>(BUDGET - 2 * MIB).unwrap();
        assert_eq!(held(gpu) - before, all.bytes() as usize);
        drop(all);
        check_works(gpu, &fft);
    });
}

#[test]
fn a_limit_below_a_page_says_what_is_the_least() {
    let memory = MemoryConfig { limit_bytes: Some(1000), ..MemoryConfig::default() };
    let config = RuntimeConfig { memory, ..RuntimeConfig::default() };
    let error = DeviceRuntime::open(&DeviceSpec::simulated(1), config).unwrap_err();
    assert!(error.is_oom(), "{error}");
    let text = error.to_string();
    let least = "the device gives memory in pages, here 2097152 bytes, so that this limit is too low: raise it to at least 2097152";
    assert!(text.contains("0 of a limit of 1000") && text.contains(least), "{text}");
    assert!(!error.is_retryable(), "the same request cannot succeed");
}

/// What the text says, done to the letter, is enough: also where something is in use, and where more than one page is needed.
#[test]
fn a_limit_that_is_raised_as_the_text_says_suffices() {
    let open = |limit| {
        let memory = MemoryConfig { limit_bytes: Some(limit), ..MemoryConfig::default() };
        DeviceRuntime::open(&DeviceSpec::simulated(1), RuntimeConfig { memory, ..RuntimeConfig::default() })
    };
    for (held, wanted) in [(0, 5 * MIB), (100, 5 * MIB), (3 * MIB, 9 * MIB), (MIB, 64 * MIB)] {
        let try_at = |limit: u64| -> kiln::Result<()> {
            let gpu = open(limit)?;
            let _held = gpu.zeros::<u8>(held)?;
            gpu.zeros::<u8>(wanted).map(drop)
        };
        let mut limit = if held == MIB { 32 } else { 4 } * MIB as u64;
        let text = try_at(limit).unwrap_err().to_string();
        let (_, advice) = text.split_once("raise it to at least ").unwrap_or_else(|| panic!("{text}"));
        let digits: String = advice.chars().take_while(char::is_ascii_digit).collect();
        limit = digits.parse().unwrap();
        try_at(limit).unwrap_or_else(|error| panic!("{limit}, because of {text}: {error}"));
    }
}

/// Calls that compute nothing but `beta` times a result, or zeros, take zeros for the operands that are not read. Where there is no memory for them, the caller's call is named, and no other.
#[test]
fn missing_memory_for_zeros_is_told_of_the_call_alone() {
    let memory = MemoryConfig { limit_bytes: Some(2 * MIB as u64), ..MemoryConfig::default() };
    let config = RuntimeConfig { memory, ..RuntimeConfig::default() };
    let gpu = DeviceRuntime::open(&DeviceSpec::simulated(3), config).unwrap();
    let (blas, sparse, fft, dnn) = (Blas::new(&gpu), Sparse::new(&gpu), Fft::new(&gpu), Dnn::new(&gpu));
    let [a, b, c] = [0.0_f32, 1.0, 2.0].map(|value| gpu.upload(&[value; 4]).unwrap());
    let csr: CsrMatrix<f32> = CsrMatrix::from_dense(&gpu, (2, 2), &[1.0, 0.0, 0.0, 1.0]).unwrap();
    let (spectrum, none) = (gpu.zeros::<[f32; 2]>(1).unwrap(), gpu.zeros::<f32>(0).unwrap());
    let mut held: Vec<GpuRef<u8>> = Vec::new();
    for size in [MIB / 2, 1 << 16, 1 << 12, 256, 16, 1] {
        while let Ok(block) = gpu.allocate::<u8>(size) {
            held.push(block);
        }
    }
    let (square, two) = (|buffer| Matrix::new(buffer, 2, 2), a.view(..2).unwrap());
    let (any, lower, kind) = (Determinism::Any, Triangle::Lower, (Triangle::Lower, Diagonal::Stored));
    let column = c.view(..2).unwrap();
    let tensor = |buffer, dimensions| Tensor::new(buffer, dimensions);
    let calls = [
        ("blas.matmul", blas.matmul(square(&a), square(&b), square(&c)).alpha(0.0).submit()),
        ("blas.gemv", blas.gemv(1.0, Matrix::new(&a, 2, 0), &none, None, &column).submit()),
        ("blas.asum", blas.asum(&none, &c.view(..1).unwrap()).submit()),
        ("blas.dot", blas.dot(&none, &none, &c.view(..1).unwrap()).submit()),
        ("blas.nrm2", blas.nrm2(&none, &c.view(..1).unwrap()).submit()),
        ("blas.syrk", blas.syrk(0.0, square(&a), None, lower, square(&c)).submit()),
        ("blas.symm", blas.symm(Side::Left, 0.0, (square(&a), lower), square(&b), None, square(&c)).submit()),
        ("blas.trmm", blas.trmm(Side::Left, 0.0, square(&a), kind, square(&b), square(&c)).submit()),
        ("blas.trsm", blas.trsm(Side::Left, 0.0, square(&a), kind, square(&c)).submit()),
        ("blas.geam", blas.geam(0.0, square(&a), Some((0.0, square(&b))), square(&c)).submit()),
        ("sparse.spmv", sparse.spmv(any, 0.0, &csr, &two, None, &column).submit()),
        ("sparse.spmm", sparse.spmm(any, 0.0, &csr, square(&a), None, square(&c)).submit()),
        ("fft.real_forward", fft.transform(&[0]).real_forward(&none, &spectrum).submit()),
        (
            "dnn.convolution",
            dnn.convolution(tensor(&a, [1, 0, 2, 2]), tensor(&b, [1, 0, 1, 1]), tensor(&c, [1, 1, 2, 2]))
                .submit(),
        ),
    ];
    for (call, answer) in calls {
        let error = answer.unwrap_err();
        let text = error.to_string();
        assert!(error.runtime().is_some_and(kiln::Error::is_oom), "{call}: {text}");
        assert!(text.starts_with(&format!("{call}: heap: out of memory")), "{text}");
    }
}

#[test]
fn temporary_memory_of_kernels_is_counted_for_primitives() {
    let memory = MemoryConfig { limit_bytes: Some(BUDGET as u64), ..MemoryConfig::default() };
    let config = RuntimeConfig { memory, ..RuntimeConfig::default() };
    let gpu = DeviceRuntime::open(&DeviceSpec::simulated(3), config).unwrap();
    let keys = gpu.zeros::<u64>(5 * MIB).unwrap();
    // The passes of a sort need as much again, which is not there.
    let text = Primitives::new(&gpu).sort(&keys, &keys).submit().unwrap_err().to_string();
    assert!(text.contains(&format!("of a limit of {BUDGET}")) && text.contains("primitives "), "{text}");
}

#[test]
fn zeros_for_operands_that_are_not_read_are_counted_for_libraries() {
    let memory = MemoryConfig { limit_bytes: Some(BUDGET as u64), ..MemoryConfig::default() };
    let config = RuntimeConfig { memory, ..RuntimeConfig::default() };
    let gpu = DeviceRuntime::open(&DeviceSpec::simulated(3), config).unwrap();
    let blas = Blas::new(&gpu);
    let (a, c) = (gpu.zeros::<f32>(4).unwrap(), gpu.zeros::<f32>(4).unwrap());
    // A graph holds the zeros while it is there.
    let mut graph = gpu.graph();
    let square = |buffer| Matrix::new(buffer, 2, 2);
    blas.matmul(square(&a), square(&a), square(&c)).alpha(0.0).record(&mut graph).unwrap();
    blas.syrk(0.0, square(&a), None, Triangle::Lower, square(&c)).record(&mut graph).unwrap();
    let text = gpu.allocate::<u8>(BUDGET).unwrap_err().to_string();
    assert!(text.contains("library "), "{text}");
    drop(graph);
}

/// A solver copies right-hand sides that are stored row after row, and pivots: what is advised counts all of it.
#[test]
fn a_limit_that_is_raised_as_a_solver_says_suffices() {
    for (order, columns) in [(64_usize, 4096_usize), (32, 9000)] {
        let try_at = |limit: u64| -> Result<(), String> {
            let memory = MemoryConfig { limit_bytes: Some(limit), ..MemoryConfig::default() };
            let config = RuntimeConfig { memory, ..RuntimeConfig::default() };
            let gpu = DeviceRuntime::open(&DeviceSpec::simulated(5), config).unwrap();
            let solve = Solve::new(&gpu);
            let ones: Vec<f64> = (0..order * order).map(|at| f64::from(at % (order + 1) == 0)).collect();
            let a = gpu.upload(&ones).unwrap();
            let pivots: Vec<i64> = (1..=order as i64).collect();
            let (pivots, b) = (gpu.upload(&pivots).unwrap(), gpu.zeros::<f64>(order * columns).unwrap());
            b.fill(3.0).unwrap();
            gpu.synchronize().unwrap();
            let mut held: Vec<GpuRef<u8>> = Vec::new();
            for size in [MIB, 1 << 16, 1 << 12, 512] {
                // What the pages of the lower limit have, and no more.
                while gpu.bytes_outstanding() as usize + size <= limit_of(order, columns) {
                    let Ok(block) = gpu.allocate::<u8>(size) else { break };
                    held.push(block);
                }
            }
            let factors = Matrix::new(&a, order, order);
            let sides = Matrix::new(&b, order, columns);
            let ticket =
                solve.lu_solve(factors, &pivots, sides).submit().map_err(|error| error.to_string())?;
            ticket.wait().map_err(|error| error.to_string())?;
            assert_eq!(b.view(..1).unwrap().download().unwrap(), [3.0]);
            Ok(())
        };
        let limit = limit_of(order, columns) as u64;
        let text = try_at(limit).unwrap_err();
        let (_, advice) = text.split_once("raise it to at least ").unwrap_or_else(|| panic!("{text}"));
        let digits: String = advice.chars().take_while(char::is_ascii_digit).collect();
        let raised = digits.parse().unwrap();
        try_at(raised).unwrap_or_else(|error| panic!("{raised}, because of {text}: {error}"));
    }
}

/// Whole pages for what a caller holds: factors, pivots and right-hand sides.
fn limit_of(order: usize, columns: usize) -> usize {
    (order * (order + 1 + columns) * 8 + MIB).next_multiple_of(4 * MIB)
}
