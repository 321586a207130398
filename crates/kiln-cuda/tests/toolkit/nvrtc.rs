//! NVRTC: code, names, diagnostics, and machines that lack it. Needs the library and neither driver nor device.

use std::io::Write;
use std::path::PathBuf;
use std::process::Command;

use kiln_cuda::nvrtc::{
    Architecture, CompileOptions, CompileTarget, Compiled, CudaSource, DiagnosticSeverity, Header, Nvrtc,
    NvrtcError,
};
use kiln_driver::Capability;

const AXPY: &str = r#"extern "C" __global__ void axpy(float a, const float* x, float* y) {
    int i = threadIdx.x;
    y[i] = a * x[i] + y[i];
}"#;

/// The compiler, or a skip that is counted.
macro_rules! nvrtc {
    () => {
        match kiln_cuda::nvrtc::Nvrtc::load() {
            Ok(nvrtc) => nvrtc,
            Err(reason) if reason.is_missing() => return $crate::nvrtc::skip(&reason),
            Err(reason) => panic!("{reason}"),
        }
    };
}

pub(crate) fn skip(reason: &dyn std::fmt::Display) {
    assert_ne!(std::env::var("CI").as_deref(), Ok("true"), "{reason}");
    // A test runs on a thread of its name.
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("nvrtc");
    let Some(log) = std::env::var_os("KILN_SKIP_LOG").filter(|path| !path.is_empty()) else { return };
    let mut log = std::fs::OpenOptions::new().create(true).append(true).open(log).unwrap();
    log.write_all(format!("{test}: NVRTC or the CUDA headers are missing\n").as_bytes()).unwrap();
}

fn ptx_options() -> CompileOptions {
    CompileOptions::new(CompileTarget::Ptx(Architecture::new(80)))
}

fn compile(nvrtc: &Nvrtc, text: &str) -> Result<Compiled, NvrtcError> {
    nvrtc.compile(&CudaSource::new("test.cu", text), &ptx_options())
}

fn failure(nvrtc: &Nvrtc, text: &str) -> kiln_cuda::nvrtc::CompileFailure {
    match compile(nvrtc, text) {
        Err(NvrtcError::Compile(failure)) => failure,
        other => panic!("{other:?}"),
    }
}

#[test]
fn ptx_is_for_the_architecture_that_was_asked_for() {
    let nvrtc = nvrtc!();
    let compiled = compile(nvrtc, AXPY).unwrap();
    assert!(compiled.ptx.contains(".target sm_80") && compiled.ptx.contains(".entry axpy("));
    assert!(compiled.cubin.is_none() && compiled.diagnostics.is_empty());
    assert!(!compiled.ptx.contains('\0'));
}

#[test]
fn a_cubin_comes_with_its_ptx() {
    let nvrtc = nvrtc!();
    let options = CompileOptions::new(CompileTarget::Cubin(Architecture::new(80)));
    let compiled = nvrtc.compile(&CudaSource::new("axpy.cu", AXPY), &options).unwrap();
    assert!(compiled.cubin.unwrap().starts_with(b"\x7fELF"));
    assert!(compiled.ptx.contains(".entry axpy("));
}

#[test]
fn fusing_a_product_and_a_sum_is_a_choice() {
    let nvrtc = nvrtc!();
    let source = CudaSource::new("axpy.cu", AXPY);
    let fused = nvrtc.compile(&source, &ptx_options()).unwrap().ptx;
    let apart = nvrtc.compile(&source, &CompileOptions { fmad: false, ..ptx_options() }).unwrap().ptx;
    assert!(fused.contains("fma.rn.f32") && !fused.contains("mul.f32"));
    assert!(!apart.contains("fma.rn.f32") && apart.contains("mul.rn.f32") && apart.contains("add.rn.f32"));
}

#[test]
fn templates_are_found_by_name_expressions() {
    let nvrtc = nvrtc!();
    let text = "template <typename T> __global__ void set(T* p, T v) { *p = v; }\n__constant__ int table[4];";
    let names = ["set<float>", "set<unsigned long long>", "&table"].map(String::from);
    let options = CompileOptions { names: names.to_vec(), ..ptx_options() };
    let compiled = nvrtc.compile(&CudaSource::new("set.cu", text), &options).unwrap();
    assert_eq!(compiled.names.len(), 3);
    for ((asked, lowered), name) in compiled.names.iter().zip(names) {
        assert_eq!(*asked, name);
        assert!(compiled.ptx.contains(lowered.as_str()), "{lowered}");
    }
    assert_ne!(compiled.names[0].1, compiled.names[1].1);
}

#[test]
fn headers_come_from_memory_and_from_folders() {
    let nvrtc = nvrtc!();
    let folder = folder("headers");
    std::fs::write(folder.join("on_disk.h"), "#define ON_DISK 2").unwrap();
    let headers = [Header { name: "in memory.h", text: "#define IN_MEMORY 3" }];
    let text = "#include \"in memory.h\"\n#include <on_disk.h>\n\
                extern \"C\" __global__ void k(int* p) { *p = IN_MEMORY * ON_DISK * GIVEN; }";
    let source = CudaSource { headers: &headers, ..CudaSource::new("k.cu", text) };
    let options = CompileOptions {
        include_folders: vec![folder.clone()],
        macros: vec![("GIVEN".into(), "7".into())],
        ..ptx_options()
    };
    let compiled = nvrtc.compile(&source, &options).unwrap();
    std::fs::remove_dir_all(folder).unwrap();
    assert!(compiled.ptx.contains("42"), "{}", compiled.ptx);
}

#[test]
fn errors_say_file_line_and_column() {
    let nvrtc = nvrtc!();
    let text = "__global__ void k(int* p) {\n    *p = missing;\n    return 5;\n}\n";
    let failure = failure(nvrtc, text);
    let places: Vec<_> = failure
        .diagnostics
        .iter()
        .map(|found| (found.severity, found.file.as_deref(), found.line, found.column))
        .collect();
    assert_eq!(
        places,
        [
            (DiagnosticSeverity::Error, Some("test.cu"), Some(2), Some(10)),
            (DiagnosticSeverity::Error, Some("test.cu"), Some(3), Some(12)),
        ]
    );
    assert_eq!(failure.diagnostics[0].message, "identifier \"missing\" is undefined");
    assert!(failure.log.contains("2 errors detected"));
    assert_eq!(failure.to_string(), "test.cu:2:10: error: identifier \"missing\" is undefined (and 1 more)");
}

#[test]
fn an_error_in_a_header_names_the_header() {
    let nvrtc = nvrtc!();
    let headers = [Header { name: "broken.h", text: "\n#error no luck\n" }];
    let source = CudaSource { headers: &headers, ..CudaSource::new("k.cu", "#include \"broken.h\"") };
    let error = nvrtc.compile(&source, &ptx_options()).unwrap_err();
    assert!(error.is_compile_error() && !error.is_missing());
    let first = &error.diagnostics()[0];
    assert_eq!((first.file.as_deref(), first.line), (Some("broken.h"), Some(2)));
    assert!(failure(nvrtc, "#include \"absent.h\"").diagnostics[0].message.contains("absent.h"));
}

#[test]
fn the_assembler_is_heard_too() {
    let nvrtc = nvrtc!();
    let text = "__global__ void k() { asm volatile(\"bogus.instruction;\"); }";
    let options = CompileOptions::new(CompileTarget::Cubin(Architecture::new(80)));
    let error = nvrtc.compile(&CudaSource::new("k.cu", text), &options).unwrap_err();
    let found = &error.diagnostics()[0];
    assert_eq!((found.severity, found.file.as_deref()), (DiagnosticSeverity::Error, Some("PTX")));
    assert!(found.line.is_some());
}

#[test]
fn warnings_do_not_fail_and_are_not_lost() {
    let nvrtc = nvrtc!();
    let compiled = compile(nvrtc, "__global__ void k() { int unused; }").unwrap();
    let [warning] = compiled.diagnostics.as_slice() else { panic!("{:?}", compiled.diagnostics) };
    assert_eq!(
        (warning.severity, warning.number, warning.line),
        (DiagnosticSeverity::Warning, Some(177), Some(1))
    );
}

#[test]
fn line_information_is_a_choice() {
    let nvrtc = nvrtc!();
    let options = CompileOptions { line_info: true, ..ptx_options() };
    let with = nvrtc.compile(&CudaSource::new("axpy.cu", AXPY), &options).unwrap().ptx;
    assert!(with.contains(".loc") && with.contains("axpy.cu"));
    assert!(!compile(nvrtc, AXPY).unwrap().ptx.contains(".loc"));
}

#[test]
fn architectures_are_asked_and_not_guessed() {
    let nvrtc = nvrtc!();
    let known = nvrtc.architectures();
    assert!(known.contains(&Architecture::new(90)) && known.is_sorted());
    let capability = |major, minor| Capability { major, minor };
    let (first, last) = (known[0], known[known.len() - 1]);
    assert_eq!(nvrtc.target_for(capability(9, 0)), Some(CompileTarget::Cubin(Architecture::new(90))));
    assert_eq!(nvrtc.target_for(capability(99, 0)), Some(CompileTarget::Ptx(last)));
    assert_eq!(nvrtc.target_for(capability(1, 0)), None);
    let asked = Architecture::new(first.number() - 1);
    let error =
        nvrtc.compile(&CudaSource::new("k.cu", AXPY), &CompileOptions::new(CompileTarget::Ptx(asked)));
    assert_eq!(error.unwrap_err(), NvrtcError::UnknownArchitecture { asked, known: known.to_vec() });
    let accelerated = CompileTarget::Ptx(Architecture::new(90).accelerated());
    let compiled = nvrtc.compile(&CudaSource::new("k.cu", AXPY), &CompileOptions::new(accelerated)).unwrap();
    assert!(compiled.ptx.contains(".target sm_90a"));
}

#[test]
fn wrong_options_and_zero_bytes_are_errors() {
    let nvrtc = nvrtc!();
    let options = CompileOptions { further: vec!["--bogus".into()], ..ptx_options() };
    let error = nvrtc.compile(&CudaSource::new("k.cu", AXPY), &options).unwrap_err();
    assert!(error.to_string().contains("--bogus"), "{error}");
    assert_eq!(compile(nvrtc, "a\0b").unwrap_err(), NvrtcError::ZeroByte { what: "the source".into() });
    let options = CompileOptions { names: vec!["no_such_name".into()], ..ptx_options() };
    assert!(nvrtc.compile(&CudaSource::new("k.cu", AXPY), &options).unwrap_err().is_compile_error());
}

#[test]
fn threads_compile_at_once() {
    let nvrtc = nvrtc!();
    std::thread::scope(|scope| {
        for number in 0..4 {
            scope.spawn(move || {
                let text = format!("extern \"C\" __global__ void k{number}(int* p) {{ *p = {number}; }}");
                assert!(compile(nvrtc, &text).unwrap().ptx.contains(&format!(".entry k{number}(")));
            });
        }
    });
}

#[test]
fn a_missing_library_says_how_to_get_it() {
    if std::env::var_os("KILN_NVRTC_TEST_CHILD").is_some() {
        let error = Nvrtc::load().unwrap_err();
        assert!(error.is_missing() && !error.is_compile_error());
        let text = error.to_string();
        assert!(text.contains("pip install nvidia-cuda-nvrtc") && text.contains("KILN_NVRTC"), "{text}");
        assert!(text.contains("/nonexistent/libnvrtc.so"), "{text}");
        return;
    }
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["nvrtc::a_missing_library_says_how_to_get_it", "--exact", "--nocapture"])
        .env("KILN_NVRTC_TEST_CHILD", "1")
        .env("KILN_NVRTC", "/nonexistent/libnvrtc.so")
        .output()
        .unwrap();
    assert!(child.status.success(), "{}", String::from_utf8_lossy(&child.stderr));
}

#[test]
fn a_file_that_is_no_nvrtc_is_named() {
    let folder = folder("unusable");
    let file = folder.join("libnvrtc.so.13");
    std::fs::write(&file, "").unwrap();
    let error = Nvrtc::open(&file).unwrap_err();
    std::fs::remove_dir_all(folder).unwrap();
    let text = error.to_string();
    assert!(text.contains("file too short; install the CUDA toolkit or"), "{text}");
    assert!(matches!(&error, NvrtcError::Unusable { path, .. } if *path == file) && error.is_missing());
}

/// A folder of this test's own.
fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("kiln-nvrtc-{}-{name}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    folder
}
