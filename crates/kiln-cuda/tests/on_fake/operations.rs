//! Library operations: which library is opened, what is set before a call, and what is said of one that cannot be used.

use std::path::Path;

use kiln_driver::{Command, DevicePlace, Driver, DriverExt, GraphNode, Image, Refusal};

use crate::machine::{Machine, calls, log};
use crate::opened::{Bench, device, launch};

const AXPY: &str = "blas.axpy element=f32 n=4 x_step=1 y_step=2";

fn with_cublas() -> Machine {
    Machine::fake().with_library("KILN_CUBLAS", include_str!("libcublas/cublas.c"))
}

/// What is said of cuBLAS when an operation is loaded.
fn unusable() -> String {
    let error = device().load(&Image::Library(AXPY)).unwrap_err();
    let Some(Refusal::Library { library: "cuBLAS", why }) = error.refusal() else { panic!("{error}") };
    assert!(why.contains("nvidia-cublas") && why.contains("KILN_CUBLAS"), "{why}");
    why.clone()
}

on_machine! {
    fn a_missing_library_is_named_with_the_way_to_get_it() on Machine::fake().with("KILN_CUBLAS", "/no/such/file") => {
        assert!(unusable().contains("/no/such/file"));
    }

    fn a_file_that_is_no_library_is_said_to_be_none() on {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("libcublas.so.0");
        std::fs::create_dir_all(env!("CARGO_TARGET_TMPDIR")).unwrap();
        std::fs::write(&path, "half of a library").unwrap();
        Machine::fake().with("KILN_CUBLAS", path)
    } => {
        assert!(unusable().contains("libcublas.so.0"));
    }

    fn a_library_that_is_too_old_lacks_an_entry_point() on {
        Machine::fake().with_library("KILN_CUBLAS", "int cublasCreate_v2(void **handle) { return 0; }")
    } => {
        let why = unusable();
        assert!(why.contains("cuBLAS at /") && why.contains(" has no `cublasDestroy_v2`, which CUDA 12 and newer have; install"), "{why}");
    }

    fn a_library_that_says_it_is_too_old_is_refused() on {
        Machine::fake().with_library("KILN_CUBLAS", concat!(
            "int cublasGetProperty(int part, int *value) { *value = part == 0 ? 11 : part == 1 ? 12 : 3; return 0; }",
            include_str!("libcublas/cublas.c"),
        ))
    } => {
        let why = unusable();
        let file = std::env::var("KILN_CUBLAS").unwrap();
        let wanted = format!(
            "cuBLAS at {file}, which KILN_CUBLAS names, is too old: version 11.12.3, kiln needs 12.0 or newer; install"
        );
        assert!(why.starts_with(&wanted), "{why}");
        assert_eq!(why.matches("too old").count(), 1, "{why}");
    }

    fn a_library_that_the_loader_does_not_load_is_told_with_the_loaders_words() on {
        Machine::fake().with_library("KILN_CUBLAS", "int no_such_function(void); int cublasCreate_v2(void **h) { return no_such_function(); }")
    } => {
        let why = unusable();
        let file = std::env::var("KILN_CUBLAS").unwrap();
        let wanted = format!("cuBLAS at {file}, which KILN_CUBLAS names, cannot be loaded: ");
        assert!(why.starts_with(&wanted) && why.contains("undefined symbol: no_such_function; install"), "{why}");
    }

    fn a_file_whose_name_says_that_it_is_too_old_is_not_opened() on {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("old-cublas");
        std::fs::create_dir_all(&folder).unwrap();
        let (source, library) = (folder.join("source.c"), folder.join("libcublas.so.11.11.3.6"));
        // Its initialiser ends the process.
        std::fs::write(&source, "#include <stdlib.h>\n__attribute__((constructor)) static void run(void) { abort(); }").unwrap();
        let built = std::process::Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(&library).arg(&source).status();
        assert!(built.unwrap().success());
        Machine::fake().with("KILN_CUBLAS", library)
    } => {
        let why = unusable();
        assert!(why.contains("libcublas.so.11.11.3.6, which KILN_CUBLAS names, is too old: version 11.11.3, kiln needs 12.0 or newer; install"), "{why}");
    }

    fn a_launch_sets_the_state_of_the_handle_before_the_call() on with_cublas() => {
        let bench = Bench::new();
        let module = bench.device.load(&Image::Library(AXPY)).unwrap();
        let other = bench.device.load(&Image::Library(AXPY)).unwrap();
        assert_eq!(calls("cublasCreate").len(), 1, "a device has one handle");
        let axpy = bench.device.function(module, "blas.axpy").unwrap();
        assert!(bench.device.function(module, "axpy").unwrap_err().is_refused());
        assert!(bench.device.global(module, "x").unwrap_err().is_refused());
        assert_eq!(axpy.attributes.workspace_bytes, 4 << 20);
        let fit = bench.device.occupancy(axpy.id, 1, 0).unwrap();
        assert_eq!((fit.blocks_per_multiprocessor, fit.suggested_block_threads), (1, 1), "a worker's client asks");
        assert!(bench.device.occupancy(axpy.id, 32, 0).unwrap_err().is_refused());
        assert!(bench.device.occupancy(axpy.id, 1, 16).unwrap_err().is_refused());
        let (x, y) = (bench.memory(16), bench.memory(28));
        let workspace = bench.memory(axpy.attributes.workspace_bytes);
        bench.device.fill(bench.stream, x.id.into(), 0, 16).unwrap();
        let one = bench.host(&1.0_f32.to_le_bytes());
        for at in 0..4 {
            bench.device.upload(bench.stream, &one, DevicePlace::from(x.id).plus(4 * at), 4).unwrap();
        }
        bench.device.fill(bench.stream, y.id.into(), 0, 28).unwrap();
        let words = [x.address.0, y.address.0, 2.5_f64.to_bits(), workspace.address.0];
        let packed: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        bench.device.submit(bench.stream, &Command::Launch(launch(&axpy, &packed))).unwrap();
        bench.device.synchronize(bench.stream).unwrap();
        let found = bench.read(y.id, 28);
        let numbers: Vec<f32> = found.chunks(4).map(|bytes| f32::from_le_bytes(bytes.try_into().unwrap())).collect();
        assert_eq!(numbers, [2.5, 0.0, 2.5, 0.0, 2.5, 0.0, 2.5]);
        let lines = log();
        let names = lines.iter().filter_map(|line| line.split(' ').nth(1).filter(|name| name.starts_with("cublas")));
        let names: Vec<&str> = names.skip(1).collect();
        assert_eq!(names, ["cublasSetStream", "cublasSetWorkspace", "cublasSetPointerMode", "cublasSaxpy"]);
        assert_eq!(calls("cublasSaxpy"), ["4 2.5 1 2"]);

        // Arguments that do not fit reach no library.
        let wrong = [&packed[..24], &[&packed[..8], &[1; 24]].concat(), &[0; 32]];
        for packed in wrong {
            let refused = bench.device.submit(bench.stream, &Command::Launch(launch(&axpy, packed))).unwrap_err();
            assert!(refused.is_refused(), "{refused}");
        }
        let mut wide = launch(&axpy, &packed);
        wide.block = 32.into();
        assert!(bench.device.submit(bench.stream, &Command::Launch(wide)).unwrap_err().is_refused());
        assert_eq!(calls("cublasSaxpy").len(), 1);
        let node = GraphNode { command: Command::Launch(launch(&axpy, &packed)), after: &[] };
        assert!(bench.device.build_graph(&[node]).unwrap_err().is_unsupported(), "this driver cannot capture");
        bench.device.destroy(module.into()).unwrap();
        bench.device.destroy(other.into()).unwrap();
        assert!(bench.device.submit(bench.stream, &Command::Launch(launch(&axpy, &packed))).unwrap_err().is_refused());
    }

    fn a_number_that_is_read_or_written_is_where_the_call_says() on with_cublas() => {
        let bench = Bench::new();
        let [x, y, result] = [(); 3].map(|()| bench.memory(400).address.0);
        let workspace = bench.memory(4 << 20).address.0;
        let submit = |text: &str, words: &[u64]| {
            let module = bench.device.load(&Image::Library(text)).unwrap();
            let function = bench.device.function(module, text.split(' ').next().unwrap()).unwrap();
            let packed: Vec<u8> = words.iter().chain([&workspace]).flat_map(|word| word.to_le_bytes()).collect();
            bench.device.submit(bench.stream, &Command::Launch(launch(&function, &packed))).unwrap();
        };
        let factor = 2.5_f64.to_bits();
        submit("blas.dot element=f32 n=4 x_step=1 y_step=1", &[x, y, result]);
        submit("blas.axpy element=f32 n=4 x_step=1 y_step=1", &[x, y, factor]);
        submit("blas.nrm2 element=f32 n=4 x_step=1", &[x, result]);
        submit("blas.scal element=f32 n=4 x_step=1", &[x, factor]);
        submit("blas.asum element=f32 n=4 x_step=1", &[x, result]);
        submit("blas.iamax element=f32 n=4 x_step=1", &[x, result]);
        // A result lies in device memory, a factor in that of the host; the handle keeps what was set last.
        assert_eq!(calls("cublasSetPointerMode"), ["1", "0", "1", "0", "1", "1"]);
    }

    fn an_operation_is_captured_when_it_is_loaded_so_that_no_launch_is_its_first_use() on {
        Machine::fake_with_capture().with_library("KILN_CUBLAS", include_str!("libcublas/cublas.c"))
    } => {
        let bench = Bench::new();
        let module = bench.device.load(&Image::Library("blas.scal element=f32 n=4 x_step=1")).unwrap();
        let counts = || ["cuStreamBeginCapture_v2", "cublasSscal_v2_64", "cuGraphLaunch"].map(|name| calls(name).len());
        assert_eq!(counts(), [1, 1, 0], "captured once, and not run");
        let scal = bench.device.function(module, "blas.scal").unwrap();
        let workspace = bench.memory(scal.attributes.workspace_bytes).address.0;
        let words = [bench.memory(16).address.0, 1.0_f64.to_bits(), workspace];
        let packed: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        bench.device.submit(bench.stream, &Command::Launch(launch(&scal, &packed))).unwrap();
        assert_eq!(counts(), [1, 2, 0], "a launch on a stream is no capture");
        let node = GraphNode { command: Command::Launch(launch(&scal, &packed)), after: &[] };
        let graph = bench.device.build_graph(&[node]).unwrap();
        assert_eq!(counts(), [2, 3, 0], "a node is captured");
        bench.device.submit(bench.stream, &Command::Graph(graph)).unwrap();
        bench.device.synchronize(bench.stream).unwrap();
        assert_eq!(counts(), [2, 3, 1], "a replay is not");
    }

    fn operations_on_matrices_get_their_arguments_in_order() on with_cublas() => {
        let bench = Bench::new();
        let [a, b, c] = [(); 3].map(|()| bench.memory(400).address.0);
        let workspace = bench.memory(32 << 20).address.0;
        let submit = |text: &str, words: &[u64]| {
            let module = bench.device.load(&Image::Library(text)).unwrap();
            let function = bench.device.function(module, text.split(' ').next().unwrap()).unwrap();
            let packed: Vec<u8> = words.iter().chain([&workspace]).flat_map(|word| word.to_le_bytes()).collect();
            bench.device.submit(bench.stream, &Command::Launch(launch(&function, &packed))).unwrap();
        };
        let (alpha, beta) = (1.5_f64.to_bits(), 0.25_f64.to_bits());
        let geam = "blas.geam element=f32 m=3 n=4 a_transposed=true a_leading=5";
        submit(&format!("{geam} has_b=true b_transposed=false b_leading=6 c_leading=7"), &[a, b, c, alpha, beta]);
        submit(&format!("{geam} has_b=false b_transposed=false b_leading=0 c_leading=7"), &[a, c, alpha]);
        let with_b = format!("1 0 3 4 1.5 {a:#x} 5 0.25 {b:#x} 6 {c:#x} 7");
        // Without `B`, 0 times `C` is added.
        assert_eq!(calls("cublasSgeam"), [with_b, format!("1 0 3 4 1.5 {a:#x} 5 0 {c:#x} 7 {c:#x} 7")]);
        let symm = "blas.symm element=f32 m=3 n=4 side=right triangle=upper a_leading=5 b_leading=6 c_leading=7";
        submit(&format!("{symm} accumulate=true"), &[a, b, c, alpha, beta]);
        submit(&format!("{symm} accumulate=false"), &[a, b, c, alpha]);
        let wanted = |beta: &str| format!("1 1 3 4 1.5 {a:#x} 5 {b:#x} 6 {beta} {c:#x} 7");
        assert_eq!(calls("cublasSsymm"), [wanted("0.25"), wanted("0")]);
        let trmm = "blas.trmm element=f32 m=3 n=4 side=left triangle=lower transposed=true diagonal=unit";
        submit(&format!("{trmm} a_leading=5 b_leading=6 c_leading=7"), &[a, b, c, alpha]);
        assert_eq!(calls("cublasStrmm"), [format!("0 0 1 1 3 4 1.5 {a:#x} 5 {b:#x} 6 {c:#x} 7")]);
    }

    fn a_call_that_the_library_refuses_is_told_with_its_status() on with_cublas().with("FAKE_CUBLAS_STATUS", "13") => {
        let bench = Bench::new();
        let module = bench.device.load(&Image::Library(AXPY)).unwrap();
        let axpy = bench.device.function(module, "blas.axpy").unwrap();
        let memory = bench.memory(axpy.attributes.workspace_bytes);
        let words = [memory.address.0, memory.address.0, 0, memory.address.0];
        let packed: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let error = bench.device.submit(bench.stream, &Command::Launch(launch(&axpy, &packed))).unwrap_err();
        let text = error.to_string();
        assert!(text.contains("cublasAxpy answered CUBLAS_STATUS_EXECUTION_FAILED (13) for blas.axpy"), "{text}");
        bench.device.synchronize(bench.stream).unwrap();
    }
}
