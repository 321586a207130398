//! Kernels from source on the simulated device: compiled once, read, checked, run.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use kiln::code_cache::{CacheConfig, CachePlace};
use kiln::telemetry::Count;
use kiln::{
    DeviceRuntime, RuntimeConfig,
    code::CodeError,
    error::ErrorKind,
    launch::{Effect, Mismatch, ParameterKind},
};
use kiln_sim::{Machine, MachineConfig, PtxEngine};

const AXPY: &str = r#"
extern "C" __global__ void axpy(float a, const float* x, float* y, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] + y[i];
}
"#;

const PTX: &str = include_str!("../copy.ptx");

/// Parameters of every kind of number; it does nothing.
const NUMBERS: &str = "
.version 7.0
.target sm_70
.address_size 64
.visible .entry numbers(.param .u32 count, .param .s32 step, .param .f32 factor, .param .b32 bits, .param .u64 word, .param .f64 wide) {
    ret;
}";

/// A folder of this test's own, removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        Self(std::env::temp_dir().join(format!("kiln-code-{name}-{}", std::process::id())))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn runtime(folder: &Folder) -> DeviceRuntime {
    let machine = Machine::new(MachineConfig::seeded(3).engine(Arc::new(PtxEngine::default())));
    let cache = CacheConfig { place: CachePlace::At(folder.0.clone()), ..CacheConfig::default() };
    let config = RuntimeConfig { cache, ..RuntimeConfig::default() };
    DeviceRuntime::from_driver(machine.device(0).unwrap(), config).unwrap()
}

fn code_error(error: &kiln::Error) -> &CodeError {
    match error.kind() {
        ErrorKind::Code(error) => error,
        other => panic!("expected an error of the code, got {other}"),
    }
}

#[test]
fn ptx_is_read_before_it_runs() {
    let folder = Folder::new("ptx");
    let gpu = runtime(&folder);
    let copy = gpu.kernel(PTX, "copy").unwrap();
    let kinds: Vec<_> =
        copy.signature().unwrap().parameters().iter().map(|parameter| parameter.kind).collect();
    assert_eq!(kinds, [ParameterKind::Pointer(Effect::Reads), ParameterKind::Pointer(Effect::Writes)]);
    let (from, to) = (gpu.upload(&[7_u32]).unwrap(), gpu.zeros::<u32>(1).unwrap());
    let mut launch = gpu.launch(&copy);
    launch.grid(1).block(1);
    // SAFETY: the kernel touches one element of each; the first launch is refused.
    let error = unsafe { launch.read(&from).read(&to).submit() }.unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Mismatch(Mismatch::Access { .. })), "{error}");
    assert!(error.to_string().contains("`to`"), "{error}");
    // SAFETY: as above.
    unsafe { gpu.launch(&copy).grid(1).block(1).read(&from).write(&to).submit() }.unwrap();
    assert_eq!(to.download().unwrap(), [7]);
}

#[test]
fn a_float_is_no_integer_where_the_code_says_which_it_takes() {
    let gpu = runtime(&Folder::new("numbers"));
    let numbers = gpu.kernel(NUMBERS, "numbers").unwrap();
    // SAFETY: the kernel does nothing.
    let submit = |launch: &mut kiln::Launch<'_>| unsafe { launch.submit() }.map(drop);
    // Signs are mixed freely, and bits may be anything of their size.
    let right = (1_i32, 2_u32, 3.0_f32, 4.0_f32, 5_i64, 6.0_f64);
    submit(gpu.launch(&numbers).grid(1).block(1).pass(right)).unwrap();
    submit(gpu.launch(&numbers).grid(1).block(1).pass((1_u32, 2_i32, 3.0_f32, 4_u32, 5_u64, 6.0_f64)))
        .unwrap();
    let refused = [
        (
            "count",
            submit(
                gpu.launch(&numbers).grid(1).block(1).pass((1.0_f32, 2_u32, 3.0_f32, 4_u32, 5_u64, 6.0_f64)),
            ),
        ),
        (
            "step",
            submit(
                gpu.launch(&numbers).grid(1).block(1).pass((1_u32, 2.0_f32, 3.0_f32, 4_u32, 5_u64, 6.0_f64)),
            ),
        ),
        (
            "factor",
            submit(gpu.launch(&numbers).grid(1).block(1).pass((1_u32, 2_u32, 3_u32, 4_u32, 5_u64, 6.0_f64))),
        ),
        (
            "word",
            submit(
                gpu.launch(&numbers).grid(1).block(1).pass((1_u32, 2_u32, 3.0_f32, 4_u32, 5.0_f64, 6.0_f64)),
            ),
        ),
        (
            "wide",
            submit(gpu.launch(&numbers).grid(1).block(1).pass((1_u32, 2_u32, 3.0_f32, 4_u32, 5_u64, 6_i64))),
        ),
    ];
    for (parameter, outcome) in refused {
        let error = outcome.unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Mismatch(Mismatch::Number { .. })), "{error}");
        assert!(error.to_string().contains(parameter) && error.to_string().contains("`numbers`"), "{error}");
    }
}

#[test]
fn what_is_no_code_is_refused_with_its_place() {
    let gpu = runtime(&Folder::new("bad"));
    let error = gpu
        .kernel(".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k( { ret; }", "k")
        .unwrap_err();
    assert!(code_error(&error).is_compile_error() && error.to_string().contains("4:"), "{error}");
    let error = gpu.kernel(PTX, "paste").unwrap_err();
    assert!(error.to_string().contains("no kernel named `paste`"), "{error}");
    assert!(gpu.source(kiln::code::Source::Cubin(b"not a cubin")).kernel("k").is_err());
}

#[test]
fn cuda_c_is_compiled_once_and_found_on_disk_by_the_next_runtime() {
    if crate::skip::without_nvrtc("cuda_c_is_compiled_once_and_found_on_disk_by_the_next_runtime") {
        return;
    }
    let folder = Folder::new("once");
    let gpu = runtime(&folder);
    let axpy = gpu.kernel(AXPY, "axpy").unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| gpu.kernel(AXPY, "axpy").unwrap());
        }
    });
    let counters = gpu.code_counters();
    assert_eq!((counters.compilations, counters.memory_hits, counters.disk.misses), (1, 4, 1));
    let (x, y) = (gpu.upload(&[1.0_f32; 1024]).unwrap(), gpu.zeros::<f32>(1024).unwrap());
    // SAFETY: the launch is refused before it is queued.
    let error = unsafe {
        gpu.launch(&axpy).grid(1).block(1).value(2_u32).read(&x).read_write(&y).value(1024_u32).submit()
    };
    let error = error.unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Mismatch(Mismatch::Number { .. })), "{error}");
    let mut launch = gpu.launch(&axpy);
    launch.grid(4).block(256).value(2.0_f32).read(&x).read_write(&y).value(1024_u32);
    // SAFETY: axpy indexes both buffers below n only.
    unsafe { launch.submit() }.unwrap();
    assert_eq!(y.download().unwrap(), [2.0; 1024]);

    let again = runtime(&folder);
    again.kernel(AXPY, "axpy").unwrap();
    let counters = again.code_counters();
    assert_eq!((counters.compilations, counters.disk.hits), (0, 1));
    again.source(AXPY).fmad(false).kernel("axpy").unwrap();
    assert_eq!(again.code_counters().compilations, 1, "other options are another key");
    let changed = AXPY.replace("+ y[i]", "- y[i]");
    again.kernel(changed.as_str(), "axpy").unwrap();
    assert_eq!(again.code_counters().compilations, 2, "other source is another key");
}

#[test]
fn a_source_includes_headers_of_the_toolkit_without_being_told_where_they_are() {
    const NAME: &str = "a_source_includes_headers_of_the_toolkit_without_being_told_where_they_are";
    const HALF: &str = "#include <cuda_fp16.h>\nextern \"C\" __global__ void half_of(const float* from, float* to) { \
        to[threadIdx.x] = __half2float(__float2half(from[threadIdx.x])); }";
    if crate::skip::without_nvrtc(NAME) || crate::skip::without_headers(NAME) {
        return;
    }
    let folder = Folder::new("toolkit-headers");
    let gpu = runtime(&folder);
    let (from, to) = (gpu.upload(&[1.5f32, 0.1]).unwrap(), gpu.zeros::<f32>(2).unwrap());
    let kernel = gpu.kernel(HALF, "half_of").unwrap();
    // SAFETY: the kernel reads and writes one element for each of its two threads.
    unsafe { gpu.launch(&kernel).grid(1).block(2).read(&from).write(&to).submit().unwrap() };
    assert_eq!(to.download().unwrap(), [1.5, 0.099975586]);
}

#[test]
fn templates_headers_and_macros_reach_the_compiler_and_a_changed_header_is_noticed() {
    if crate::skip::without_nvrtc(
        "templates_headers_and_macros_reach_the_compiler_and_a_changed_header_is_noticed",
    ) {
        return;
    }
    const SCALE: &str = "#include \"factor.h\"\n#include \"more.h\"\ntemplate <typename T> __global__ void scale(T* data) { data[threadIdx.x] *= FACTOR * MORE * TWO; }";
    let folder = Folder::new("headers");
    std::fs::create_dir_all(&folder.0).unwrap();
    let gpu = runtime(&folder);
    let build = |more: &str| {
        std::fs::write(folder.0.join("more.h"), format!("#define MORE {more}\n")).unwrap();
        let source =
            gpu.source(SCALE).header("factor.h", "#define FACTOR 5").include(&folder.0).define("TWO", "2");
        source.instantiate("scale<int>").instantiate("scale<double>").kernel("scale<double>").unwrap()
    };
    for (more, expected) in [("1", 10.0), ("3", 30.0)] {
        let kernel = build(more);
        let data = gpu.upload(&[1.0_f64, 2.0]).unwrap();
        let mut launch = gpu.launch(&kernel);
        launch.grid(1).block(1);
        launch.block(2).read_write(&data);
        // SAFETY: the kernel touches one element for each of its two threads.
        unsafe { launch.submit() }.unwrap();
        assert_eq!(data.download().unwrap(), [expected, 2.0 * expected]);
    }
    let error =
        gpu.source(SCALE).header("factor.h", "").include(&folder.0).define("TWO", "2").define("FACTOR", "1");
    let error = error.kernel("scale<float>").unwrap_err();
    assert!(matches!(code_error(&error), CodeError::NotInstantiated { .. }), "{error}");
}

#[test]
fn a_mistake_in_the_source_is_told_with_its_line() {
    if crate::skip::without_nvrtc("a_mistake_in_the_source_is_told_with_its_line") {
        return;
    }
    let gpu = runtime(&Folder::new("mistake"));
    let error =
        gpu.kernel("extern \"C\" __global__ void k(int* p) {\n  p[0] = nothing;\n}", "k").unwrap_err();
    let code = code_error(&error);
    assert!(code.is_compile_error(), "{error}");
    assert!(error.to_string().contains('2') && error.to_string().contains("nothing"), "{error}");
}

#[test]
fn what_is_found_loaded_saves_what_it_took_to_make() {
    let gpu = runtime(&Folder::new("saved"));
    let first = gpu.kernel(PTX, "copy").unwrap();
    let once = gpu.code_counters();
    assert_eq!((once.loads, once.memory_hits, once.time_saved()), (1, 0, Duration::ZERO));
    let again: Vec<_> = (0..3).map(|_| gpu.kernel(PTX, "copy").unwrap()).collect();
    let counters = gpu.code_counters();
    assert_eq!((counters.loads, counters.memory_hits), (1, 3));
    assert_eq!(counters.memory_time_saved, 3 * once.load_time);
    assert_ne!(counters.time_saved(), Duration::ZERO);
    let seen = gpu.telemetry().snapshot();
    let nanoseconds = counters.memory_time_saved.as_nanos() as u64;
    assert_eq!(seen.count(Count::MemorySavedNanoseconds), nanoseconds);
    let line =
        format!("cache=\"memory\"}} {}.{:09}", nanoseconds / 1_000_000_000, nanoseconds % 1_000_000_000);
    let page = seen.prometheus();
    assert!(
        page.lines().any(|each| each.starts_with("kiln_code_saved_seconds_total") && each.ends_with(&line)),
        "{page}"
    );
    drop((first, again));
}

#[test]
fn compiled_code_saves_its_compile_time_in_memory_and_on_disk() {
    if crate::skip::without_nvrtc("compiled_code_saves_its_compile_time_in_memory_and_on_disk") {
        return;
    }
    let folder = Folder::new("compile-time");
    let gpu = runtime(&folder);
    let _axpy = gpu.kernel(AXPY, "axpy").unwrap();
    let first = gpu.code_counters();
    assert_eq!(first.time_saved(), Duration::ZERO);
    gpu.kernel(AXPY, "axpy").unwrap();
    assert_eq!(gpu.code_counters().memory_time_saved, first.compile_time + first.load_time);
    assert_eq!(gpu.disk_cache().list().unwrap()[0].compile_time, Some(first.compile_time));

    let next = runtime(&folder);
    let _axpy = next.kernel(AXPY, "axpy").unwrap();
    let found = next.code_counters();
    assert_eq!((found.compile_time, found.disk.time_saved), (Duration::ZERO, first.compile_time));
    next.kernel(AXPY, "axpy").unwrap();
    assert_eq!(next.code_counters().memory_time_saved, first.compile_time + found.load_time);
    assert_eq!(
        next.telemetry().snapshot().count(Count::DiskSavedNanoseconds),
        first.compile_time.as_nanos() as u64
    );
}

#[test]
fn asking_for_the_text_alone_compiles_it_once_too() {
    if crate::skip::without_nvrtc("asking_for_the_text_alone_compiles_it_once_too") {
        return;
    }
    let gpu = runtime(&Folder::new("text"));
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| gpu.source(AXPY).ptx().unwrap());
            scope.spawn(|| gpu.kernel(AXPY, "axpy").unwrap());
        }
    });
    assert_eq!(gpu.code_counters().compilations, 1);
}
