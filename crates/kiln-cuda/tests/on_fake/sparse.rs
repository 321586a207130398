//! Sparse operations: which descriptors cuSPARSE gets, and which algorithm.

use kiln_driver::{Command, DeviceMemory, DevicePlace, Driver, DriverExt, Function, Image, Refusal};

use crate::machine::{Machine, calls};
use crate::opened::{Bench, device, launch};

const SPMV: &str = "sparse.spmv format=csr element=f32 index=i32 rows=2 columns=3 nonzeros=3 transposed=false accumulate=true order=run_to_run";

fn with_cusparse() -> Machine {
    Machine::fake().with_library("KILN_CUSPARSE", include_str!("libcusparse/cusparse.c"))
}

/// What is said of cuSPARSE when an operation is loaded.
fn unusable() -> String {
    let error = device().load(&Image::Library(SPMV)).unwrap_err();
    let Some(Refusal::Library { library: "cuSPARSE", why }) = error.refusal() else { panic!("{error}") };
    assert!(why.contains("nvidia-cusparse") && why.contains("KILN_CUSPARSE"), "{why}");
    why.clone()
}

fn load(bench: &Bench, text: &str) -> Function {
    let module = bench.device.load(&Image::Library(text)).unwrap();
    bench.device.function(module, text.split(' ').next().unwrap()).unwrap()
}

/// Memory with these bytes.
fn uploaded(bench: &Bench, bytes: impl IntoIterator<Item = [u8; 4]>) -> DeviceMemory {
    let bytes: Vec<u8> = bytes.into_iter().flatten().collect();
    let memory = bench.memory(bytes.len() as u64);
    let size = bytes.len() as u64;
    bench.device.upload(bench.stream, &bench.host(&bytes), DevicePlace::from(memory.id), size).unwrap();
    memory
}

/// Launches an operation with memory for its first operands, then scalars, then workspace. Returns addresses as the log has them.
fn run(bench: &Bench, text: &str, operands: usize, scalars: &[f64]) -> Vec<String> {
    let function = load(bench, text);
    let mut words: Vec<u64> = (0..operands).map(|_| bench.memory(4096).address.0).collect();
    words.extend(scalars.iter().map(|value| value.to_bits()));
    if function.attributes.workspace_bytes > 0 {
        words.push(bench.memory(4096).address.0);
    }
    let packed: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    bench.device.submit(bench.stream, &Command::Launch(launch(&function, &packed))).unwrap();
    bench.device.synchronize(bench.stream).unwrap();
    words.into_iter().map(|word| format!("{word:#x}")).collect()
}

on_machine! {
    fn a_missing_cusparse_is_named_with_the_way_to_get_it() on Machine::fake().with("KILN_CUSPARSE", "/no/such/file") => {
        assert!(unusable().contains("/no/such/file"));
    }

    fn a_cusparse_that_is_too_old_lacks_an_entry_point() on {
        Machine::fake().with_library("KILN_CUSPARSE", "int cusparseCreate(void **handle) { return 0; }")
    } => {
        let why = unusable();
        assert!(why.contains("cuSPARSE at /") && why.contains(" has no `cusparseDestroy`, which CUDA 12 and newer have"), "{why}");
    }

    fn a_sparse_product_is_computed_with_the_matrix_of_the_launch() on with_cusparse() => {
        let bench = Bench::new();
        let spmv = load(&bench, SPMV);
        assert_eq!(calls("cusparseCreate").len(), 1);
        assert_eq!(calls("SpMV_bufferSize"), ["0 0 3"], "the algorithm with equal bits");
        assert_eq!(spmv.attributes.workspace_bytes, 500);
        // 0 2 0 / 1 0 3
        let offsets = uploaded(&bench, [0_i32, 1, 3].map(i32::to_le_bytes));
        let indices = uploaded(&bench, [1_i32, 0, 2].map(i32::to_le_bytes));
        let values = uploaded(&bench, [2.0_f32, 1.0, 3.0].map(f32::to_le_bytes));
        let x = uploaded(&bench, [1.0_f32, 10.0, 100.0].map(f32::to_le_bytes));
        let y = uploaded(&bench, [4.0_f32, 6.0].map(f32::to_le_bytes));
        let work = bench.memory(500);
        let memory = [offsets, indices, values, x, y].map(|memory| memory.address.0);
        let scalars = [2.0_f64.to_bits(), 0.5_f64.to_bits(), work.address.0];
        let packed: Vec<u8> = memory.iter().chain(&scalars).flat_map(|word| word.to_le_bytes()).collect();
        bench.device.submit(bench.stream, &Command::Launch(launch(&spmv, &packed))).unwrap();
        bench.device.synchronize(bench.stream).unwrap();
        let found = bench.read(y.id, 8);
        let found: Vec<f32> = found.chunks(4).map(|bytes| f32::from_le_bytes(bytes.try_into().unwrap())).collect();
        assert_eq!(found, [42.0, 605.0]);
        let [offsets, indices, values, x, y] = memory;
        let csr = format!("csr(2 3 3 {offsets:#x} {indices:#x} {values:#x} 2 2 0 0)");
        let wanted = format!("0 2 {csr} vec(3 {x:#x} 0) 0.5 vec(2 {y:#x} 0) 0 3 {:#x}", work.address.0);
        assert_eq!(calls("SpMV"), [wanted]);
        assert_eq!(calls("destroyed").len() % 3, 0, "no descriptor is left");
        assert!(calls("destroyed").len() >= 6);
    }

    fn every_sparse_operation_gets_its_arguments_in_order() on with_cusparse() => {
        let bench = Bench::new();
        let csr = |at: &[String], index: i32, kind: i32| {
            format!("csr(4 5 6 {} {} {} {index} {index} 0 {kind})", at[0], at[1], at[2])
        };
        let matrix = "rows=4 columns=5 nonzeros=6";
        let text = format!("sparse.spmv format=csr element=f32 index=i64 {matrix} transposed=true accumulate=false order=any");
        let at = run(&bench, &text, 5, &[3.0]);
        let wanted = format!("1 3 {} vec(4 {} 0) 0 vec(5 {} 0) 0 0 {}", csr(&at, 3, 0), at[3], at[4], at[6]);
        assert_eq!(calls("SpMV"), [wanted]);
        let layout = "n=7 transposed=false layout=rows b_leading=8 c_leading=10 accumulate=true order=run_to_run";
        let at = run(&bench, &format!("sparse.spmm format=csr element=f64 index=i32 {matrix} {layout}"), 5, &[1.5, -1.0]);
        assert_eq!(calls("SpMM_bufferSize"), ["0 0 1 12"]);
        let (b, c) = (format!("mat(5 7 8 {} 1 2)", at[3]), format!("mat(4 7 10 {} 1 2)", at[4]));
        assert_eq!(calls("SpMM"), [format!("0 0 1.5 {} {b} -1 {c} 1 12 0", csr(&at, 2, 1))]);
        let uneven = "n=7 transposed=false layout=rows b_leading=8 c_leading=9 accumulate=true order=run_to_run";
        let text = format!("sparse.spmm format=csr element=f64 index=i32 {matrix} {uneven}");
        let refused = bench.device.load(&Image::Library(&text)).unwrap_err();
        assert!(refused.to_string().contains("begin at multiples of 16 bytes"), "{refused}");
        let layout = "n=7 transposed=true layout=columns b_leading=8 c_leading=9 accumulate=false order=any";
        let at = run(&bench, &format!("sparse.spmm format=csr element=f64 index=i32 {matrix} {layout}"), 5, &[1.0]);
        let (b, c) = (format!("mat(4 7 8 {} 1 1)", at[3]), format!("mat(5 7 9 {} 1 1)", at[4]));
        assert_eq!(calls("SpMM")[1], format!("1 0 1 {} {b} 0 {c} 1 0 0", csr(&at, 2, 1)));
        let at = run(&bench, &format!("sparse.to_dense format=csr element=f32 index=i32 {matrix} layout=rows leading=6"), 4, &[]);
        assert_eq!(calls("SparseToDense"), [format!("{} mat(4 5 6 {} 0 2) 0 {}", csr(&at, 2, 0), at[3], at[4])]);
    }

    fn a_matrix_of_coordinates_is_described_as_one() on with_cusparse() => {
        let bench = Bench::new();
        let coo = |at: &[String], kind: i32| format!("coo(4 5 6 {} {} {} 2 0 {kind})", at[0], at[1], at[2]);
        let matrix = "format=coo element=f32 index=i32 rows=4 columns=5 nonzeros=6";
        let at = run(&bench, &format!("sparse.spmv {matrix} transposed=false accumulate=false order=run_to_run"), 5, &[3.0]);
        let wanted = format!("0 3 {} vec(5 {} 0) 0 vec(4 {} 0) 0 4 {}", coo(&at, 0), at[3], at[4], at[6]);
        assert_eq!(calls("SpMV"), [wanted], "the algorithm with equal bits");
        let layout = "n=7 transposed=false layout=rows b_leading=7 c_leading=7 accumulate=false order=run_to_run";
        run(&bench, &format!("sparse.spmm {} {layout}", matrix.replace("f32", "f64")), 5, &[1.5]);
        assert_eq!(calls("SpMM_bufferSize"), ["0 0 1 2"]);
        let at = run(&bench, &format!("sparse.to_dense {matrix} layout=rows leading=6"), 4, &[]);
        assert_eq!(calls("SparseToDense"), [format!("{} mat(4 5 6 {} 0 2) 0 {}", coo(&at, 0), at[3], at[4])]);
    }

    fn a_call_that_cusparse_refuses_is_told_with_its_status() on with_cusparse().with("FAKE_CUSPARSE_STATUS", "10") => {
        let bench = Bench::new();
        let spmv = load(&bench, SPMV);
        let words: Vec<u64> = (0..8).map(|_| bench.memory(500).address.0).collect();
        let packed: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let submitted = bench.device.submit(bench.stream, &Command::Launch(launch(&spmv, &packed)));
        let text = submitted.unwrap_err().to_string();
        assert!(text.contains("cusparseSpMV answered CUSPARSE_STATUS_NOT_SUPPORTED (10) for sparse.spmv"), "{text}");
    }
}
