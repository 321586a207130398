//! Matrix products: which descriptors cuBLASLt gets, which search is made, and with what a product is queued.

use kiln_driver::{Command, Driver, DriverExt, Function, Image, Refusal};

use crate::machine::{Machine, calls};
use crate::opened::{Bench, device, launch};

/// A product of 8 x 16 times 16 x 4; what is said of it replaces words of this.
const PRODUCT: &str = "blas.matmul m=8 n=4 k=16 batch=1 a=f32:n:9:0 b=f32:n:17:0 d=f32:n:10:0 math=ieee epilogue=none scaled=false accumulate=false order=any \
    workspace=33554432 alignment=64 algorithm=0";
/// What the stand-in's first algorithm needs.
const LARGE: u64 = 4 << 20;
const ALIGNMENTS: &str = "MIN_ALIGNMENT_A=64 MIN_ALIGNMENT_B=64 MIN_ALIGNMENT_C=64 MIN_ALIGNMENT_D=64";

fn with_cublaslt() -> Machine {
    Machine::fake().with_library("KILN_CUBLASLT", include_str!("libcublaslt/cublaslt.c"))
}

/// The product with other words in place of those of the same name.
fn product(words: &[&str]) -> String {
    let name = |word: &str| word.split('=').next().unwrap().to_owned();
    let with = |word: &str| {
        let other = words.iter().find(|other| word.contains('=') && name(other) == name(word));
        (*other.unwrap_or(&word)).to_owned()
    };
    PRODUCT.split_whitespace().map(with).collect::<Vec<_>>().join(" ")
}

fn load(bench: &Bench, text: &str) -> Function {
    let module = bench.device.load(&Image::Library(text)).unwrap();
    bench.device.function(module, "blas.matmul").unwrap()
}

/// The last call of a name.
fn last(name: &str) -> String {
    calls(name).pop().unwrap_or_else(|| panic!("no call of {name}"))
}

/// Launches a product with memory for its operands, then scalars, then workspace. Returns the addresses.
fn run(bench: &Bench, text: &str, operands: usize, scalars: &[f64]) -> Vec<u64> {
    let function = load(bench, text);
    let mut words: Vec<u64> = (0..operands).map(|_| bench.memory(4096).address.0).collect();
    words.extend(scalars.iter().map(|value| value.to_bits()));
    let workspace = function.attributes.workspace_bytes;
    if workspace > 0 {
        words.push(bench.memory(workspace).address.0);
    }
    let packed: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    bench.device.submit(bench.stream, &Command::Launch(launch(&function, &packed))).unwrap();
    bench.device.synchronize(bench.stream).unwrap();
    words
}

on_machine! {
    fn a_missing_cublaslt_is_named_with_the_way_to_get_it() on Machine::fake().with("KILN_CUBLASLT", "/no/such/file") => {
        let error = device().load(&Image::Library(&product(&[]))).unwrap_err();
        let Some(Refusal::Library { library: "cuBLASLt", why }) = error.refusal() else { panic!("{error}") };
        assert!(why.contains("/no/such/file") && why.contains("KILN_CUBLASLT"), "{why}");
    }

    fn a_product_is_described_searched_for_and_queued() on with_cublaslt() => {
        let bench = Bench::new();
        let at = run(&bench, &product(&["accumulate=true"]), 3, &[2.5, -0.5]);
        assert_eq!(calls("cublasLtCreate").len(), 1);
        assert_eq!(last("product"), "32F 32F TRANSA=N TRANSB=N EPILOGUE=DEFAULT");
        assert_eq!(last("layouts"), "32F:8x16:9 32F:16x4:17 32F:8x4:10 32F:8x4:10");
        assert_eq!(last("preference"), format!("MAX_WORKSPACE_BYTES=33554432 {ALIGNMENTS}"));
        let [a, b, d, _, _, workspace] = at[..] else { panic!("{at:?}") };
        let wanted =
            format!("2.5 {a:#x} {b:#x} -0.5 {d:#x} {d:#x} algorithm=100 workspace={workspace:#x}:{LARGE} stream=1");
        assert_eq!(calls("cublasLtMatmul"), [wanted]);
        assert_eq!(calls("destroyed").len(), 1, "the preference; the product is loaded");
    }

    fn the_workspace_limit_is_what_the_search_is_told() on with_cublaslt() => {
        let bench = Bench::new();
        for (limit, bytes, algorithm) in [(LARGE, LARGE, 100), (LARGE - 1, 0, 101), (0, 0, 101)] {
            let text = product(&[&format!("workspace={limit}")]);
            assert_eq!(load(&bench, &text).attributes.workspace_bytes, bytes, "limit {limit}");
            assert!(last("preference").starts_with(&format!("MAX_WORKSPACE_BYTES={limit} ")));
            run(&bench, &text, 3, &[1.0]);
            let queued = last("cublasLtMatmul");
            assert!(queued.contains(&format!(" algorithm={algorithm} ")), "{queued}");
            assert!(queued.contains(&format!(":{bytes} ")), "{queued}");
            assert_eq!(queued.contains("workspace=(nil):0"), bytes == 0, "{queued}");
        }
    }

    fn another_algorithm_and_equal_bits_are_asked_for() on with_cublaslt() => {
        let bench = Bench::new();
        run(&bench, &product(&["algorithm=2", "order=run_to_run"]), 3, &[1.0]);
        assert!(last("cublasLtMatmul").contains(" algorithm=102 workspace=(nil):0 "));
        let wanted = format!("MAX_WORKSPACE_BYTES=33554432 REDUCTION_SCHEME_MASK=0 {ALIGNMENTS}");
        assert_eq!(last("preference"), wanted);
        let error = bench.device.load(&Image::Library(&product(&["algorithm=3"]))).unwrap_err().to_string();
        assert!(error.contains("it proposes fewer; algorithm 0 is its own choice"), "{error}");
    }

    fn epilogues_have_the_names_of_the_library_and_the_bias_of_the_launch() on with_cublaslt() => {
        let bench = Bench::new();
        for (text, name) in [("relu", "RELU"), ("gelu", "GELU")] {
            run(&bench, &product(&[&format!("epilogue={text}")]), 3, &[1.0]);
            assert_eq!(last("product"), format!("32F 32F TRANSA=N TRANSB=N EPILOGUE={name}"));
            assert_eq!(last("given"), "0 0 0");
        }
        for (text, name) in [("bias", "BIAS"), ("bias+relu", "RELU_BIAS"), ("bias+gelu", "GELU_BIAS")] {
            let words = [
                &format!("epilogue={text}") as &str, "a=bf16:n:9:0", "b=bf16:n:17:0", "d=bf16:n:10:0",
            ];
            let at = run(&bench, &product(&words), 4, &[1.0]);
            assert_eq!(last("product"), format!("32F 32F TRANSA=N TRANSB=N EPILOGUE={name} BIAS_DATA_TYPE=16BF"));
            assert_eq!(last("pointers"), "64 0 0", "the search looks at the alignment of the bias");
            assert_eq!(last("given"), format!("{:#x} 0 0", at[3]));
        }
    }

    fn one_product_with_two_biases_is_given_each_in_turn() on with_cublaslt() => {
        let bench = Bench::new();
        let function = load(&bench, &product(&["epilogue=bias", "workspace=0"]));
        let memory: Vec<u64> = (0..5).map(|_| bench.memory(4096).address.0).collect();
        for bias in [memory[3], memory[4], memory[4], memory[3]] {
            let words = [memory[0], memory[1], memory[2], bias, 1.0_f64.to_bits()];
            let packed: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            bench.device.submit(bench.stream, &Command::Launch(launch(&function, &packed))).unwrap();
            assert_eq!(last("given"), format!("{bias:#x} 0 0"));
        }
    }

    fn types_transposes_and_batches_are_those_of_the_operation() on with_cublaslt() => {
        let bench = Bench::new();
        let batch = ["batch=3", "a=f64:t:16:128", "b=f64:t:4:0", "d=f64:n:8:32"];
        run(&bench, &product(&batch), 3, &[-3.0]);
        assert_eq!(last("product"), "64F 64F TRANSA=T TRANSB=T EPILOGUE=DEFAULT");
        let d = "64F:8x4:8:BATCH_COUNT=3:STRIDE=32";
        let wanted =
            format!("64F:16x8:16:BATCH_COUNT=3:STRIDE=128 64F:4x16:4:BATCH_COUNT=3:STRIDE=0 {d} {d}");
        assert_eq!(last("layouts"), wanted);
        assert!(last("cublasLtMatmul").starts_with("-3 "));
        let modes = [
            ("a=f16:n:9:0", "b=f16:n:17:0", "d=f16:n:10:0", "math=f16", "16F 16F", "16F"),
            ("a=f16:n:9:0", "b=f16:n:17:0", "d=f32:n:10:0", "math=ieee", "32F 32F", "16F"),
            ("a=f32:n:9:0", "b=f32:n:17:0", "d=f32:n:10:0", "math=tf32", "32F_FAST_TF32 32F", "32F"),
            ("a=f32:n:9:0", "b=f32:n:17:0", "d=f32:n:10:0", "math=bf16x9", "32F_EMULATED_16BFX9 32F", "32F"),
            ("a=i8:t:16:0", "b=i8:n:16:0", "d=i32:n:8:0", "math=ieee", "32I 32I", "8I"),
        ];
        for (a, b, d, math, compute, element) in modes {
            run(&bench, &product(&[a, b, d, math]), 3, &[1.0]);
            assert!(last("product").starts_with(&format!("{compute} TRANSA=")), "{}", last("product"));
            assert!(last("layouts").starts_with(&format!("{element}:")), "{}", last("layouts"));
            let queued = last("cublasLtMatmul");
            assert!(queued.starts_with("1 ") && queued.contains(" 0 0x"), "alpha 1, beta 0: {queued}");
        }
    }

    fn eight_bit_factors_have_their_scale_factors() on with_cublaslt() => {
        let bench = Bench::new();
        let words = [
            "m=16", "n=16", "a=f8e4m3:t:16:0", "b=f8e4m3:n:16:0", "d=bf16:n:16:0", "epilogue=bias", "scaled=true",
        ];
        let at = run(&bench, &product(&words), 6, &[1.0]);
        assert_eq!(last("product"), "32F 32F TRANSA=T TRANSB=N EPILOGUE=BIAS BIAS_DATA_TYPE=16BF");
        assert_eq!(last("layouts"), "8F_E4M3:16x16:16 8F_E4M3:16x16:16 16BF:16x16:16 16BF:16x16:16");
        assert_eq!(last("pointers"), "64 64 64");
        assert_eq!(last("given"), format!("{:#x} {:#x} {:#x}", at[3], at[4], at[5]));
    }

    fn a_product_that_cublaslt_refuses_is_told_with_its_status() on with_cublaslt().with("FAKE_CUBLASLT_STATUS", "13") => {
        let bench = Bench::new();
        let function = load(&bench, &product(&["workspace=0"]));
        let words: Vec<u64> = (0..3).map(|_| bench.memory(4096).address.0).chain([1.0_f64.to_bits()]).collect();
        let packed: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let error = bench.device.submit(bench.stream, &Command::Launch(launch(&function, &packed))).unwrap_err();
        assert!(error.to_string().contains("cublasLtMatmul answered CUBLAS_STATUS_EXECUTION_FAILED (13)"), "{error}");
    }
}
