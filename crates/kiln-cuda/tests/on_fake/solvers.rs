//! Solver operations: what cuSOLVER is asked before a launch, and which arguments it gets.

use kiln_driver::{Command, DevicePlace, Driver, DriverExt, Function, GraphNode, Image, Refusal};

use crate::machine::{Machine, calls, log};
use crate::opened::{Bench, device, launch};

const POTRF: &str = "solve.potrf element=f32 n=3 triangle=lower leading=4";

fn with_cusolver() -> Machine {
    Machine::fake().with_library("KILN_CUSOLVER", include_str!("libcusolver/cusolver.c"))
}

/// What is said of cuSOLVER when an operation is loaded.
fn unusable() -> String {
    let error = device().load(&Image::Library(POTRF)).unwrap_err();
    let Some(Refusal::Library { library: "cuSOLVER", why }) = error.refusal() else { panic!("{error}") };
    assert!(why.contains("nvidia-cusolver") && why.contains("KILN_CUSOLVER"), "{why}");
    why.clone()
}

fn load(bench: &Bench, text: &str) -> Function {
    let module = bench.device.load(&Image::Library(text)).unwrap();
    bench.device.function(module, text.split(' ').next().unwrap()).unwrap()
}

fn packed(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// Loads and launches an operation with so many operands. Returns the addresses of operands and workspace as the log has them.
fn run(bench: &Bench, text: &str, operands: usize) -> Vec<String> {
    let function = load(bench, text);
    let count = operands + usize::from(function.attributes.workspace_bytes > 0);
    let size = function.attributes.workspace_bytes.max(4096);
    let words: Vec<u64> = (0..count).map(|_| bench.memory(size).address.0).collect();
    bench.device.submit(bench.stream, &Command::Launch(launch(&function, &packed(&words)))).unwrap();
    bench.device.synchronize(bench.stream).unwrap();
    words.into_iter().map(|word| format!("{word:#x}")).collect()
}

on_machine! {
    fn a_missing_cusolver_is_named_with_the_way_to_get_it() on Machine::fake().with("KILN_CUSOLVER", "/no/such/file") => {
        assert!(unusable().contains("/no/such/file"));
    }

    fn a_cusolver_that_is_too_old_lacks_an_entry_point() on {
        Machine::fake().with_library("KILN_CUSOLVER", "int cusolverDnCreate(void **handle) { return 0; }")
    } => {
        let why = unusable();
        assert!(why.contains("cuSOLVER at /") && why.contains(" has no `cusolverDnDestroy`, which CUDA 12 and newer have"), "{why}");
    }

    fn a_factorisation_is_asked_for_its_workspace_when_it_is_loaded() on with_cusolver() => {
        let bench = Bench::new();
        let potrf = load(&bench, POTRF);
        load(&bench, "solve.getrf element=f64 m=5 n=4 leading=6");
        assert_eq!(calls("cusolverDnCreate").len(), 1, "a device has one handle");
        assert_eq!(calls("Xpotrf_bufferSize"), ["0 3 0 4 0"]);
        assert_eq!(calls("Xgetrf_bufferSize"), ["5 4 1 6 1"]);
        assert_eq!(potrf.attributes.workspace_bytes, 1000);
        let (a, info, work) = (bench.memory(44), bench.memory(4), bench.memory(1000));
        // Column after column: 4 2 2 / 5 3 / 6.
        let numbers: [f32; 11] = [4.0, 2.0, 2.0, 9.0, 9.0, 5.0, 3.0, 9.0, 9.0, 9.0, 6.0];
        let bytes: Vec<u8> = numbers.iter().flat_map(|value| value.to_le_bytes()).collect();
        bench.device.upload(bench.stream, &bench.host(&bytes), DevicePlace::from(a.id), 44).unwrap();
        let words = packed(&[a.address.0, info.address.0, work.address.0]);
        bench.device.submit(bench.stream, &Command::Launch(launch(&potrf, &words))).unwrap();
        bench.device.synchronize(bench.stream).unwrap();
        let found = bench.read(a.id, 44);
        let found: Vec<f32> = found.chunks(4).map(|bytes| f32::from_le_bytes(bytes.try_into().unwrap())).collect();
        assert_eq!(found, [2.0, 1.0, 1.0, 9.0, 9.0, 2.0, 1.0, 9.0, 9.0, 9.0, 2.0]);
        assert_eq!(bench.read(info.id, 4), [0; 4]);
        let wanted = format!(
            "0 3 0 {:#x} 4 0 {:#x} 1000 0 0 {:#x}",
            a.address.0, work.address.0, info.address.0
        );
        assert_eq!(calls("Xpotrf"), [wanted]);
        let lines = log();
        let names = lines.iter().filter_map(|line| line.split(' ').nth(1));
        let names: Vec<&str> = names.filter(|name| name.contains("cusolver") || name.starts_with('X')).collect();
        assert_eq!(names[names.len() - 2..], ["cusolverDnSetStream", "Xpotrf"], "the stream is set before the call");
    }

    fn every_solver_gets_its_arguments_in_order() on with_cusolver() => {
        let bench = Bench::new();
        let at = run(&bench, "solve.potrs element=f64 n=3 columns=2 triangle=upper a_leading=4 b_leading=5", 3);
        assert_eq!(calls("Xpotrs"), [format!("1 3 2 1 {} 4 1 {} 5 {}", at[0], at[1], at[2])]);
        let at = run(&bench, "solve.getrf element=f32 m=5 n=4 leading=6", 3);
        assert_eq!(calls("Xgetrf"), [format!("5 4 0 {} 6 {} 0 {} 1000 0 0 {}", at[0], at[1], at[3], at[2])]);
        let at = run(&bench, "solve.getrs element=f32 n=4 columns=2 transposed=true a_leading=6 b_leading=7", 4);
        assert_eq!(calls("Xgetrs"), [format!("1 4 2 0 {} 6 {} 0 {} 7 {}", at[0], at[1], at[2], at[3])]);
        let at = run(&bench, "solve.geqrf element=f64 m=5 n=4 leading=6", 3);
        assert_eq!(calls("Xgeqrf_bufferSize"), ["5 4 1 6 1 1"]);
        assert_eq!(calls("Xgeqrf"), [format!("5 4 1 {} 6 1 {} 1 {} 1000 0 0 {}", at[0], at[1], at[3], at[2])]);
        let ormqr = "side=right transposed=true m=2 n=5 k=4 a_leading=6 c_leading=3";
        let at = run(&bench, &format!("solve.ormqr element=f32 {ormqr}"), 4);
        assert_eq!(calls("Sormqr_bufferSize"), ["1 1 2 5 4 6 3"]);
        let arguments = format!("1 1 2 5 4 {} 6 {} {} 3 {} 300 {}", at[0], at[1], at[2], at[4], at[3]);
        assert_eq!(calls("Sormqr"), [arguments]);
        run(&bench, &format!("solve.ormqr element=f64 {ormqr}"), 4);
        assert_eq!(calls("Dormqr").len(), 1);
        let at = run(&bench, "solve.orgqr element=f32 m=6 n=4 k=3 leading=7", 3);
        assert_eq!(calls("Sorgqr_bufferSize"), ["6 4 3 7"]);
        assert_eq!(calls("Sorgqr"), [format!("6 4 3 {} 7 {} {} 200 {}", at[0], at[1], at[3], at[2])]);
        run(&bench, "solve.orgqr element=f64 m=6 n=4 k=3 leading=7", 3);
        assert_eq!(calls("Dorgqr").len(), 1);
        let at = run(&bench, "solve.syevd element=f64 n=4 triangle=lower vectors=true leading=5", 3);
        assert_eq!(calls("Xsyevd_bufferSize"), ["1 0 4 1 5 1 1"]);
        assert_eq!(calls("Xsyevd"), [format!("1 0 4 1 {} 5 1 {} 1 {} 1000 0 0 {}", at[0], at[1], at[3], at[2])]);
        let text = "solve.gesvd element=f32 m=6 n=3 vectors=true a_leading=7 u_leading=8 v_leading=4";
        let at = run(&bench, text, 5);
        assert_eq!(calls("Sgesvdj_bufferSize"), ["1 1 6 3 7 8 4 1"]);
        let arguments = format!("1 1 6 3 {} 7 {} {} 8 {} 4 {} 100 {} 1", at[0], at[1], at[2], at[3], at[5], at[4]);
        assert_eq!(calls("Sgesvdj"), [arguments]);
    }

    fn singular_values_alone_have_room_for_the_vectors_that_the_library_writes() on with_cusolver() => {
        let bench = Bench::new();
        let text = "solve.gesvd element=f64 m=6 n=3 vectors=false a_leading=7 u_leading=0 v_leading=0";
        // 100 numbers, then 6 x 3 and 3 x 3 ones, each part at a multiple of 256.
        assert_eq!(load(&bench, text).attributes.workspace_bytes, 1024 + 256 + 72);
        let at = run(&bench, text, 3);
        let work = u64::from_str_radix(&at[3][2..], 16).unwrap();
        let (u, v) = (work + 1024, work + 1024 + 256);
        let wanted = format!("0 1 6 3 {} 7 {} {u:#x} 6 {v:#x} 3 {} 100 {} 1", at[0], at[1], at[3], at[2]);
        assert_eq!(calls("Dgesvdj"), [wanted]);
    }

    fn host_workspace_belongs_to_the_operation() on with_cusolver().with("FAKE_CUSOLVER_HOST_BYTES", "48") => {
        let bench = Bench::new();
        let at = run(&bench, POTRF, 2);
        assert_eq!(calls("Xpotrf"), [format!("0 3 0 {} 4 0 {} 1000 1 48 {}", at[0], at[2], at[1])]);
        let potrf = load(&bench, POTRF);
        let words: Vec<u64> = (0..3).map(|_| bench.memory(1000).address.0).collect();
        let (words, queries) = (packed(&words), calls("cuStreamQuery").len());
        bench.device.submit(bench.stream, &Command::Launch(launch(&potrf, &words))).unwrap();
        assert!(calls("cuStreamQuery").len() > queries, "the next call may use the same bytes");
        let node = GraphNode { command: Command::Launch(launch(&potrf, &words)), after: &[] };
        let error = bench.device.build_graph(&[node]).unwrap_err();
        let Some(Refusal::Library { library: "cuSOLVER", why }) = error.refusal() else { panic!("{error}") };
        assert!(why.contains("no graph can hold it; submit it between two replays"), "{why}");
    }

    fn a_call_that_cusolver_refuses_is_told_with_its_status() on with_cusolver().with("FAKE_CUSOLVER_STATUS", "7") => {
        let bench = Bench::new();
        let potrf = load(&bench, POTRF);
        let words: Vec<u64> = (0..3).map(|_| bench.memory(1000).address.0).collect();
        let submitted = bench.device.submit(bench.stream, &Command::Launch(launch(&potrf, &packed(&words))));
        let text = submitted.unwrap_err().to_string();
        assert!(text.contains("cusolverDnXpotrf answered CUSOLVER_STATUS_INTERNAL_ERROR (7) for solve.potrf"), "{text}");
        bench.device.synchronize(bench.stream).unwrap();
    }

    fn memory_that_runs_out_in_cusolver_is_out_of_memory() on with_cusolver().with("FAKE_CUSOLVER_STATUS", "2") => {
        let bench = Bench::new();
        let potrf = load(&bench, POTRF);
        let words: Vec<u64> = (0..3).map(|_| bench.memory(1000).address.0).collect();
        let submitted = bench.device.submit(bench.stream, &Command::Launch(launch(&potrf, &packed(&words))));
        assert!(submitted.unwrap_err().is_oom());
    }
}
