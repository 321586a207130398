//! Operations of neural networks: which graphs cuDNN gets, which engine is taken, and what is said of a failure.

use kiln_driver::{Command, DeviceMemory, DevicePlace, Driver, DriverExt, Function, Image, Refusal};

use crate::machine::{Machine, calls};
use crate::opened::{Bench, device, launch};

const FORWARD: &str = "dnn.convolution pass=forward element=f32 layout=nchw batch=1 channels=2 image=3x3 filters=1 filter=2x2 padding=0x0 stride=1x1 \
    dilation=1x1 groups=1 math=ieee order=run_to_run workspace=1000";

/// cuDNN needs cuBLASLt to be there, too.
fn with_cudnn() -> Machine {
    without_cublaslt().with_library("KILN_CUBLASLT", "int cublasLtGetVersion(void) { return 130000; }")
}

fn without_cublaslt() -> Machine {
    Machine::fake().with_library("KILN_CUDNN", include_str!("libcudnn/cudnn.c"))
}

/// What is said of cuDNN when an operation is loaded.
fn unusable(text: &str) -> String {
    let error = device().load(&Image::Library(text)).unwrap_err();
    let Some(Refusal::Library { library: "cuDNN", why }) = error.refusal() else { panic!("{error}") };
    why.clone()
}

fn load(bench: &Bench, text: &str) -> Function {
    let module = bench.device.load(&Image::Library(text)).unwrap();
    bench.device.function(module, text.split(' ').next().unwrap()).unwrap()
}

/// Memory with these numbers.
fn uploaded(bench: &Bench, values: &[f32]) -> DeviceMemory {
    let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    let memory = bench.memory(bytes.len() as u64);
    let size = bytes.len() as u64;
    bench.device.upload(bench.stream, &bench.host(&bytes), DevicePlace::from(memory.id), size).unwrap();
    memory
}

/// The attributes of the descriptors of a kind, as they were when they were finished.
fn finalized(kind: u32) -> Vec<String> {
    let begin = format!("{kind} ");
    calls("finalized").into_iter().filter_map(|line| line.strip_prefix(&begin).map(str::to_owned)).collect()
}

on_machine! {
    fn a_missing_cudnn_is_named_with_the_way_to_get_it() on Machine::fake().with("KILN_CUDNN", "/no/such/file") => {
        let why = unusable(FORWARD);
        assert!(why.contains("/no/such/file"), "{why}");
        assert!(why.contains("nvidia-cudnn-cu13") && why.contains("KILN_CUDNN"), "{why}");
    }

    fn a_cudnn_that_is_too_old_is_named_with_the_way_to_get_a_newer_one() on with_cudnn().with("FAKE_CUDNN_VERSION", "8902") => {
        let why = unusable(FORWARD);
        assert!(why.contains("cuDNN at /") && why.contains(" is too old: version 8.9.2, kiln needs 9.0 or newer; install"), "{why}");
    }

    fn a_cudnn_without_an_entry_point_is_refused() on {
        Machine::fake().with_library("KILN_CUDNN", "unsigned long cudnnGetVersion(void) { return 91900; }")
    } => {
        let why = unusable(FORWARD);
        assert!(why.contains(" has no `cudnnGetErrorString`, which cuDNN 9 has"), "{why}");
    }

    fn cudnn_without_cublaslt_is_refused_because_it_would_end_the_process() on {
        without_cublaslt().with("KILN_CUBLASLT", "/no/such/file")
    } => {
        let error = device().load(&Image::Library(FORWARD)).unwrap_err();
        let Some(Refusal::Library { library: "cuBLASLt", why }) = error.refusal() else { panic!("{error}") };
        assert!(why.contains("nvidia-cublas") && why.contains("/no/such/file"), "{why}");
        assert!(calls("cudnnCreate").is_empty());
    }

    fn a_convolution_is_computed_with_the_tensors_of_the_launch() on with_cudnn() => {
        let bench = Bench::new();
        let convolution = load(&bench, FORWARD);
        assert_eq!(calls("cudnnCreate").len(), 1);
        assert_eq!(convolution.attributes.workspace_bytes, 300, "of the engine that is exact, repeatable and small enough");
        let image: Vec<f32> = (1..=18).map(|at| at as f32).collect();
        let x = uploaded(&bench, &image);
        let w = uploaded(&bench, &[1.0, 0.0, 0.0, -1.0, 0.5, 0.0, 0.0, 0.0]);
        let (y, work) = (bench.memory(16), bench.memory(300));
        let words = [x, w, y, work].map(|memory| memory.address.0);
        let packed: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        bench.device.submit(bench.stream, &Command::Launch(launch(&convolution, &packed))).unwrap();
        bench.device.synchronize(bench.stream).unwrap();
        let found = bench.read(y.id, 16);
        let found: Vec<f32> = found.chunks(4).map(|bytes| f32::from_le_bytes(bytes.try_into().unwrap())).collect();
        assert_eq!(found, [1.0, 1.5, 2.5, 3.0]);
        let [x, w, y, work] = words;
        let pack = format!("1001:6={x:#x},{w:#x},{y:#x} 1000:3=1,2,3 1003:6={work:#x}");
        assert_eq!(finalized(16).last().unwrap(), &pack);
        assert_eq!(calls("cudnnBackendExecute").last().unwrap(), "7");
    }

    fn a_graph_says_everything_about_a_convolution() on with_cudnn() => {
        let bench = Bench::new();
        let text = "dnn.convolution pass=backward_filter element=bf16 layout=nhwc batch=2 channels=6 image=9x8 filters=4 filter=3x2 padding=1x2 stride=2x1 \
            dilation=1x3 groups=2 math=ieee order=any workspace=5000";
        let convolution = load(&bench, text);
        assert_eq!(finalized(1), ["100:1=0 101:7=1 106:3=2 105:3=1,2 104:3=1,2 102:3=1,3 103:3=2,1"]);
        let tensor = |dimensions: &str, strides: &str, id: u32| format!("901:1=9 902:3={dimensions} 903:3={strides} 906:3={id} 900:3=16");
        let [x, w, y] = [("2,6,9,8", "432,1,48,6"), ("4,3,3,2", "18,1,6,3"), ("2,4,5,9", "180,1,36,4")];
        assert_eq!(finalized(17), [tensor(x.0, x.1, 1), tensor(w.0, w.1, 2), tensor(y.0, y.1, 3)]);
        assert_eq!(finalized(11), ["714:15=1 716:15=17#1 715:15=17#2 717:15=17#3 712:4=1 713:4=0"]);
        assert_eq!(finalized(15), ["801:15=11 800:0=handle"]);
        assert_eq!(finalized(4), ["201:15=15 200:8=3"], "the heuristics of mode A alone");
        assert_eq!(finalized(5), ["400:0=handle 401:15=3"]);
        assert_eq!(convolution.attributes.workspace_bytes, 0, "the first engine, which may add in any order");
    }

    fn backward_data_has_its_own_attributes() on with_cudnn() => {
        let bench = Bench::new();
        let text = FORWARD.replace("forward", "backward_data").replace("math=ieee", "math=tf32");
        let convolution = load(&bench, &text.replace("workspace=1000", "workspace=5000"));
        assert_eq!(finalized(12), ["708:15=1 710:15=17#1 709:15=17#2 711:15=17#3 706:4=1 707:4=0"]);
        assert_eq!(convolution.attributes.workspace_bytes, 2000, "the second engine, with tensor cores");
    }

    fn attention_is_a_graph_of_two_products_with_a_softmax_between_them() on with_cudnn() => {
        let bench = Bench::new();
        let text = "dnn.attention element=f16 layout=positions_first batch=2 heads=4 key_heads=2 queries=5 keys=6 head=8 mask=causal_top_left order=run_to_run workspace=5000";
        let attention = load(&bench, text);
        let operations = "19,13,13,13,13,13,22,13,13,22,13,13,13,19";
        assert_eq!(finalized(15), [format!("801:15={operations} 800:0=handle")]);
        let modes: Vec<String> = finalized(0).iter().map(|text| text.split(' ').collect::<Vec<_>>().join(" ")).collect();
        let plain = |mode: u32| format!("0:14={mode} 1:1=0");
        let wanted = [plain(1), "0:14=501 1:1=0 9:3=2".into(), "0:14=501 1:1=0 9:3=3".into(), "0:14=303 1:1=11".into(), plain(601)];
        assert_eq!(modes, [&wanted[..], &[plain(9), plain(13), plain(15), plain(0), plain(6)]].concat());
        let tensors = finalized(17);
        assert_eq!(tensors[0], "901:1=2 902:3=2,4,5,8 903:3=160,8,32,1 906:3=1 900:3=16");
        assert_eq!(tensors[1], "901:1=2 902:3=2,2,8,6 903:3=96,8,1,16 906:3=2 900:3=16", "keys are transposed");
        assert_eq!(tensors[4], "901:1=0 902:3=2,4,5,6 903:3=120,30,6,1 906:3=5 900:3=16 907:2=1");
        assert_eq!(tensors[5], "901:1=0 902:3=1,1,1,1 903:3=1,1,1,1 906:3=6 900:3=16 908:2=1");
        assert_eq!(finalized(19), ["1523:15=18 1520:15=17#1 1521:15=17#2 1522:15=17#5", "1523:15=18 1520:15=17#19 1521:15=17#3 1522:15=17#4"]);
        assert_eq!(tensors[18], "901:1=2 902:3=2,4,5,6 903:3=120,30,6,1 906:3=19 900:3=16 907:2=1", "weights have the type of values");
        let mut words: Vec<u64> = (0..4).map(|_| bench.memory(640).address.0).collect();
        words.push(0.25_f64.to_bits());
        words.push(bench.memory(4096).address.0);
        let packed: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        bench.device.submit(bench.stream, &Command::Launch(launch(&attention, &packed))).unwrap();
        let pack = finalized(16).pop().unwrap();
        assert!(pack.contains("1000:3=1,2,3,4,6,11 "), "{pack}");
        assert_eq!(calls("scalars"), ["0.25 -inf"]);
    }

    fn a_mask_whose_diagonal_ends_at_the_last_key_moves_the_rows() on with_cudnn() => {
        let bench = Bench::new();
        let text = "dnn.attention element=f16 layout=positions_first batch=2 heads=4 key_heads=2 queries=5 keys=6 head=8 mask=causal_bottom_right order=run_to_run workspace=5000";
        load(&bench, text);
        let operations = "19,13,13,13,13,13,13,13,22,13,13,22,13,13,13,19";
        assert_eq!(finalized(15), [format!("801:15={operations} 800:0=handle")]);
        let modes: Vec<String> = finalized(0).into_iter().skip(1).take(5).collect();
        // Rows, columns, rows + keys, rows - queries, rows >= columns.
        let wanted = ["0:14=501 1:1=0 9:3=2", "0:14=501 1:1=0 9:3=3", "0:14=0 1:1=4 9:3=3", "0:14=9 1:1=4 9:3=3", "0:14=303 1:1=11"];
        assert_eq!(modes, wanted);
        let tensors = finalized(17);
        assert_eq!(tensors[9], "901:1=4 902:3=1,1,1,1 903:3=1,1,1,1 906:3=10 900:3=16 908:2=1", "an integer by value");
    }

    fn every_descriptor_is_destroyed() on with_cudnn() => {
        let bench = Bench::new();
        let module = bench.device.load(&Image::Library(FORWARD)).unwrap();
        bench.device.destroy(module.into()).unwrap();
        bench.device.synchronize(bench.stream).unwrap();
        let (mut made, mut destroyed) = (calls("made"), calls("destroyed"));
        made.sort();
        destroyed.sort();
        assert_eq!(made, destroyed);
    }

    fn an_attribute_that_is_not_accepted_is_named() on with_cudnn().with("FAKE_CUDNN_ATTRIBUTE", "902") => {
        let why = unusable(FORWARD);
        let wanted = "CUDNN_STATUS_BAD_PARAM, the attribute TENSOR_DIMENSIONS of a descriptor TENSOR; cuDNN says: this value is not accepted";
        assert!(why.contains("cudnnBackendSetAttribute answered status 2000 for dnn.convolution pass=forward"), "{why}");
        assert!(why.contains(wanted), "{why}");
    }

    fn engines_that_cannot_be_used_are_told_with_their_reasons() on with_cudnn().with("FAKE_CUDNN_NO_PLAN", "1") => {
        let why = unusable(FORWARD);
        for part in [
            "5 proposals are not usable",
            "engine 40 is NONDETERMINISTIC",
            "engine 41 is TENSOR_CORE",
            "engine 42 is WINOGRAD",
            "cudnnBackendFinalize answered status 3000: CUDNN_STATUS_NOT_SUPPORTED, a descriptor EXECUTION_PLAN; cuDNN says: no kernel for this shape",
        ] {
            assert!(why.contains(part), "{part} is not in: {why}");
        }
    }

    fn too_little_workspace_is_a_reason() on with_cudnn() => {
        let why = unusable(&FORWARD.replace("workspace=1000", "workspace=100"));
        assert!(why.contains("engine 43 takes 1048576 bytes of workspace; engine 7 takes 300 bytes"), "{why}");
    }

    fn a_launch_that_fails_is_told_with_its_status() on with_cudnn().with("FAKE_CUDNN_EXECUTE", "5001") => {
        let bench = Bench::new();
        let convolution = load(&bench, FORWARD);
        let words: Vec<u64> = (0..4).map(|_| bench.memory(500).address.0).collect();
        let packed: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let submitted = bench.device.submit(bench.stream, &Command::Launch(launch(&convolution, &packed)));
        let text = submitted.unwrap_err().to_string();
        assert!(text.contains("cudnnBackendExecute answered status 5001 for dnn.convolution"), "{text}");
        assert!(text.contains("cuDNN says: the launch failed"), "{text}");
    }
}
