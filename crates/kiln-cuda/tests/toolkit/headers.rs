//! The toolkit's headers: found in folders made for it, and included by real CUDA C where there are NVRTC and headers.

use std::path::PathBuf;

use kiln_cuda::nvrtc::{
    Architecture, CompileOptions, CompileTarget, CudaSource, Header, HeadersNotFound, ToolkitHeaders,
    standard_headers,
};
use kiln_cuda::{LibraryOrigin, LibraryVersion, SearchEnvironment};

use crate::libraries::Machine;
use crate::nvrtc::skip;

const HALF: &str = r#"#include <cuda_fp16.h>
extern "C" __global__ void twice(__half* values) { values[threadIdx.x] = __hadd(values[threadIdx.x], values[threadIdx.x]); }"#;

fn version(major: u32, minor: u32) -> Option<LibraryVersion> {
    Some(LibraryVersion { major, minor: Some(minor), patch: None })
}

impl Machine {
    /// A folder with the headers of a toolkit of some version, such as 13000.
    fn headers(&self, folder: &str, version: u32) -> PathBuf {
        self.write(&format!("{folder}/cuda_fp16.h"), b"#pragma once\n");
        self.write(&format!("{folder}/cuda.h"), format!("#define CUDA_VERSION {version}\n").as_bytes());
        self.path(folder)
    }

    fn find_headers(&self, nvrtc: &str) -> Result<ToolkitHeaders, HeadersNotFound> {
        self.environment().find_headers(Some(&self.path(nvrtc)), version(13, 0))
    }
}

#[test]
fn headers_are_found_beside_nvrtc_in_every_layout() {
    let pip = "venv/lib/python3.12/site-packages/nvidia";
    for (name, nvrtc, include) in [
        ("toolkit", "opt/cuda-13.0/lib64/libnvrtc.so.13", "opt/cuda-13.0/include"),
        ("target", "opt/cuda/targets/sbsa-linux/lib/libnvrtc.so", "opt/cuda/targets/sbsa-linux/include"),
        ("pip13", &format!("{pip}/cu13/lib/libnvrtc.so.13"), &format!("{pip}/cu13/include")),
        ("pip12", &format!("{pip}/cuda_nvrtc/lib/libnvrtc.so.12"), &format!("{pip}/cuda_runtime/include")),
        ("conda", "conda/lib/libnvrtc.so.13", "conda/targets/x86_64-linux/include"),
        ("debian", "usr/lib/x86_64-linux-gnu/libnvrtc.so.13", "usr/include"),
    ] {
        let machine = Machine::new(&format!("headers-{name}"));
        machine.write(nvrtc, b"");
        assert!(machine.find_headers(nvrtc).is_err(), "{name}");
        let folder = machine.headers(include, 13000);
        let found = machine.find_headers(nvrtc).unwrap();
        assert_eq!(found.folders, [folder], "{name}");
        assert_eq!(
            (found.origin, found.version.unwrap().to_string()),
            (LibraryOrigin::BesideNvrtc, "13.0".into())
        );
    }
}

#[test]
fn a_linked_nvrtc_leads_to_the_toolkit_behind_the_link() {
    let machine = Machine::new("headers-linked");
    machine.write("opt/cuda-13.0/lib64/libnvrtc.so.13", b"");
    let folder = machine.headers("opt/cuda-13.0/include", 13000);
    std::fs::create_dir_all(machine.path("somewhere/lib")).unwrap();
    let link = machine.path("somewhere/lib/libnvrtc.so.13");
    std::os::unix::fs::symlink(machine.path("opt/cuda-13.0/lib64/libnvrtc.so.13"), link).unwrap();
    assert_eq!(machine.find_headers("somewhere/lib/libnvrtc.so.13").unwrap().folders, [folder]);
}

#[test]
fn headers_of_other_parts_come_along() {
    let machine = Machine::new("headers-parts");
    let main = machine.headers("nvidia/cuda_runtime/include", 12040);
    machine.write("nvidia/cuda_nvrtc/lib/libnvrtc.so.12", b"");
    machine.write("nvidia/curand/include/curand_kernel.h", b"");
    machine.write("nvidia/cuda_runtime/include/cccl/cub/cub.cuh", b"");
    machine.write("nvidia/cublas/include/cublas.h", b"");
    let nvrtc = machine.path("nvidia/cuda_nvrtc/lib/libnvrtc.so.12");
    let found = machine.environment().find_headers(Some(&nvrtc), version(12, 4)).unwrap();
    assert_eq!(found.folders, [main.clone(), main.join("cccl"), machine.path("nvidia/curand/include")]);
}

#[test]
fn headers_of_another_major_version_are_passed_over() {
    let machine = Machine::new("headers-versions");
    let old = machine.headers("usr/local/cuda-12.4/include", 12040);
    let missing = machine.find_headers("lib/libnvrtc.so.13").unwrap_err();
    let refused = missing.tried.iter().find(|tried| tried.path == old).unwrap();
    assert!(refused.why.contains("12.4") && refused.why.contains("13.0"), "{missing}");
    assert!(missing.to_string().contains("`pip install 'nvidia-cuda-runtime==13.0.*'`"), "{missing}");
    let new = machine.headers("usr/local/cuda-13.2/include", 13020);
    let found = machine.find_headers("lib/libnvrtc.so.13").unwrap();
    assert_eq!((found.folders, found.origin), (vec![new], LibraryOrigin::Toolkit));
    // Nothing is compared where the version of NVRTC is not known.
    assert!(machine.environment().find_headers(None, None).is_ok());
}

#[test]
fn each_place_is_searched_for_headers_in_its_turn() {
    let machine = Machine::new("headers-places");
    let environment = machine
        .environment()
        .with_variable("CUDA_HOME", machine.path("home"))
        .with_variable("VIRTUAL_ENV", machine.path("venv"))
        .with_variable("CONDA_PREFIX", machine.path("conda"));
    let nvrtc = machine.write("nvrtc/lib/libnvrtc.so.13", b"");
    let find = |environment: &SearchEnvironment| {
        let found = environment.find_headers(Some(&nvrtc), version(13, 0)).unwrap();
        (found.folders, found.origin)
    };
    // From the last place to the first: each new folder is found before all the others.
    for (folder, origin) in [
        ("usr/include", LibraryOrigin::System),
        ("usr/local/cuda/include", LibraryOrigin::Toolkit),
        ("conda/include", LibraryOrigin::Conda),
        ("venv/lib/python3.12/site-packages/nvidia/cu13/include", LibraryOrigin::Python),
        ("home/include", LibraryOrigin::CudaHome),
        ("nvrtc/include", LibraryOrigin::BesideNvrtc),
    ] {
        let folder = machine.headers(folder, 13000);
        assert_eq!(find(&environment), (vec![folder], origin));
    }
    let configured = machine.headers("mine", 12000);
    let environment = environment.with_variable("KILN_CUDA_INCLUDE", &configured);
    assert_eq!(find(&environment), (vec![configured], LibraryOrigin::Configured));
    // A variable that leads to no headers is not passed over.
    let wrong = environment.with_variable("KILN_CUDA_INCLUDE", machine.path("nowhere"));
    let missing = wrong.find_headers(Some(&nvrtc), version(13, 0)).unwrap_err();
    assert_eq!(missing.tried.len(), 1);
    assert!(missing.to_string().contains("KILN_CUDA_INCLUDE"), "{missing}");
}

#[test]
fn another_toolkit_has_another_identity() {
    let machine = Machine::new("headers-identity");
    let identity = |folder: &str, version| {
        let environment =
            machine.environment().with_variable("KILN_CUDA_INCLUDE", machine.headers(folder, version));
        environment.find_headers(None, None).unwrap().identity()
    };
    let first = identity("a", 13000);
    assert_eq!(
        machine
            .environment()
            .with_variable("KILN_CUDA_INCLUDE", machine.path("a"))
            .find_headers(None, None)
            .unwrap()
            .identity(),
        first
    );
    assert_ne!(identity("b", 13000), first, "another place");
    assert_ne!(identity("a", 13010), first, "another version");
}

/// The compiler and its headers, or a skip that is counted.
macro_rules! nvrtc_with_headers {
    () => {{
        let nvrtc = nvrtc!();
        match nvrtc.headers() {
            Ok(headers) => (nvrtc, headers),
            Err(missing) => return skip(&missing),
        }
    }};
}

fn options() -> CompileOptions {
    CompileOptions::new(CompileTarget::Ptx(Architecture::new(80)))
}

#[test]
fn a_source_may_include_headers_of_the_toolkit() {
    let (nvrtc, headers) = nvrtc_with_headers!();
    assert!(headers.folders[0].join("cuda_fp16.h").is_file());
    let compiled = nvrtc.compile(&CudaSource::new("half.cu", HALF), &options()).unwrap();
    assert!(compiled.ptx.contains("add.f16") || compiled.ptx.contains("add.rn.f16"), "{}", compiled.ptx);
    assert!(compiled.diagnostics.is_empty(), "{:?}", compiled.diagnostics);
    let all = "#include <cuda_bf16.h>\n#include <cuda_fp8.h>\n__global__ void k() {}";
    nvrtc.compile(&CudaSource::new("all.cu", all), &options()).unwrap();
}

#[test]
fn a_header_of_the_program_hides_one_of_the_toolkit() {
    let (nvrtc, _) = nvrtc_with_headers!();
    let machine = Machine::new("headers-hidden");
    machine.write("cuda_fp16.h", b"#define MINE 4711\n");
    let text = "#include <cuda_fp16.h>\nextern \"C\" __global__ void k(int* p) { *p = MINE; }";
    let options = CompileOptions { include_folders: vec![machine.path("")], ..options() };
    assert!(nvrtc.compile(&CudaSource::new("k.cu", text), &options).unwrap().ptx.contains("4711"));
}

/// What device code uses of the headers of C and C++; NVRTC has none of them.
const STANDARD: &str = r#"#include <stdint.h>
#include <cstdint>
#include <math.h>
#include <cmath>
#include <stdio.h>
#include <cassert>
#include <assert.h>
#include <stddef.h>
#include <limits.h>
#include <float.h>
#include <inttypes.h>
#include <stdlib.h>
#include <cstring>
#include <algorithm>
#include <limits>
#include <utility>
#include <type_traits>
struct Mixed { uint8_t tag; uint64_t value; };
enum class Kind : uint8_t { One };
static_assert(sizeof(int64_t) == 8 && sizeof(std::uint16_t) == 2 && sizeof(uintptr_t) == sizeof(void*), "");
static_assert(offsetof(Mixed, value) == 8 && UINT64_MAX == ~0ull && (INT64_C(1) << 40) == 1ll << 40, "");
static_assert(INT32_MIN == -2147483647 - 1 && CHAR_BIT == 8 && LONG_MAX == 0x7fffffffffffffffL, "");
static_assert(std::is_same<std::decay<const int (&)[3]>::type, const int*>::value, "");
static_assert(std::is_same_v<std::common_type_t<int, float>, float> && std::is_integral_v<uint64_t>, "");
static_assert(std::is_signed_v<int> && !std::is_signed<unsigned>::value && !std::is_signed_v<Mixed>, "");
static_assert(std::is_same_v<std::underlying_type_t<Kind>, uint8_t> && std::is_enum_v<Kind>, "");
static_assert(std::is_convertible_v<int, double> && !std::is_convertible_v<Mixed, int>, "");
static_assert(std::is_function_v<int(int)> && std::is_same_v<std::decay_t<int(int)>, int (*)(int)>, "");
static_assert(std::is_same_v<std::make_unsigned_t<short>, unsigned short> && std::is_pointer_v<int* const>, "");
static_assert(std::numeric_limits<int>::max() == INT_MAX && std::numeric_limits<float>::max() == FLT_MAX, "");
static_assert(std::numeric_limits<long>::min() == LONG_MIN && std::numeric_limits<int>::digits10 == 9, "");
static_assert(std::is_same_v<std::make_index_sequence<3>, std::index_sequence<0, 1, 2>>, "");
template <typename T, std::enable_if_t<std::is_floating_point<T>::value, int> = 0>
__device__ T half_of(T x) { return x / 2; }
extern "C" __global__ void k(uint64_t* out, float* x, int32_t n) {
    int32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    assert(x[i] == x[i]);
    float y = std::max(std::sqrt(x[i]), FLT_EPSILON) * (float)M_PI + half_of(std::fabs(x[i]));
    if (std::isnan(y) || y == INFINITY) y = std::numeric_limits<float>::infinity();
    if (i == 0) printf("%d %" PRId64 "\n", n, (int64_t)n);
    float z = std::move(y);
    std::swap(z, y);
    out[i] = std::pair<int, int>(1, 2).second + (uint64_t)z;
    x[i] = std::pow(y, 2.0f) + NAN;
}"#;

#[test]
fn headers_of_c_and_cpp_come_with_kiln() {
    let nvrtc = nvrtc!();
    let compiled = nvrtc.compile(&CudaSource::new("standard.cu", STANDARD), &options()).unwrap();
    assert!(compiled.ptx.contains("vprintf") && compiled.ptx.contains("__assertfail"), "{}", compiled.ptx);
    assert!(compiled.diagnostics.is_empty(), "{:?}", compiled.diagnostics);
    // Each alone, and in every version of the language.
    for header in standard_headers() {
        let text = format!("#include <{}>\n__global__ void k() {{}}", header.name);
        for language in ["--std=c++14", "--std=c++17", "--std=c++20"] {
            let options = CompileOptions { further: vec![language.into()], ..options() };
            let compiled = nvrtc.compile(&CudaSource::new("k.cu", &text), &options);
            let compiled = compiled.unwrap_or_else(|error| panic!("{} {language}: {error}", header.name));
            assert!(
                compiled.diagnostics.is_empty(),
                "{} {language}: {:?}",
                header.name,
                compiled.diagnostics
            );
        }
    }
}

#[test]
fn headers_of_cpp_and_of_the_toolkit_go_together() {
    let (nvrtc, _) = nvrtc_with_headers!();
    let standard: String =
        standard_headers().iter().map(|header| format!("#include <{}>\n", header.name)).collect();
    let toolkit = "#include <cuda_fp16.h>\n#include <cuda_bf16.h>\n#include <cuda_pipeline.h>\n";
    for text in [format!("{standard}{toolkit}"), format!("{toolkit}{standard}")] {
        let compiled = nvrtc.compile(&CudaSource::new("all.cu", &text), &options()).unwrap();
        assert!(compiled.diagnostics.is_empty(), "{:?}", compiled.diagnostics);
    }
}

#[test]
fn a_header_of_the_program_hides_one_of_kiln() {
    let nvrtc = nvrtc!();
    let machine = Machine::new("headers-standard");
    machine.write("stdint.h", b"#define MINE 4711\n");
    let text = "#include <stdint.h>\nextern \"C\" __global__ void k(int* p) { *p = MINE; }";
    let (folder, source) = (machine.path(""), CudaSource::new("k.cu", text));
    let spelt = format!("-I{}", folder.display());
    for options in [
        CompileOptions { include_folders: vec![folder], ..options() },
        CompileOptions { further: vec![spelt], ..options() },
    ] {
        assert!(nvrtc.compile(&source, &options).unwrap().ptx.contains("4711"));
    }
    let headers = [Header { name: "stdint.h", text: "#define MINE 815\n" }];
    let source = CudaSource { headers: &headers, ..source };
    assert!(nvrtc.compile(&source, &options()).unwrap().ptx.contains("815"));
}

#[test]
fn a_header_that_is_missing_says_how_to_get_it() {
    let nvrtc = nvrtc!();
    let hint = |header: &str| {
        let text = format!("#include <{header}>\n__global__ void k() {{}}");
        let error = nvrtc.compile(&CudaSource::new("k.cu", &text), &options()).unwrap_err();
        assert!(error.is_compile_error() && error.to_string().contains(header), "{error}");
        error.to_string()
    };
    let version = nvrtc.version();
    let text = hint("cuda_no_such_header.h");
    assert!(text.contains("pip install") && text.contains(&format!("=={version}.*")), "{text}");
    assert!(hint("mine.h").contains("include folders"));
}

/// The same where no headers are found at all, which is a matter of the environment and so of another process.
#[test]
fn without_headers_the_hint_names_the_package_and_the_variable() {
    const TEST: &str = "headers::without_headers_the_hint_names_the_package_and_the_variable";
    let nvrtc = nvrtc!();
    if std::env::var_os("KILN_HEADERS_TEST_CHILD").is_some() {
        assert!(nvrtc.headers().is_err());
        let error = nvrtc.compile(&CudaSource::new("half.cu", HALF), &options()).unwrap_err().to_string();
        assert!(error.contains("cuda_fp16.h") && error.contains("nvidia-cuda-runtime"), "{error}");
        assert!(error.contains("KILN_CUDA_INCLUDE"), "{error}");
        // What includes nothing needs none.
        nvrtc.compile(&CudaSource::new("k.cu", "__global__ void k() {}"), &options()).unwrap();
        return;
    }
    let child = std::process::Command::new(std::env::current_exe().unwrap())
        .args([TEST, "--exact", "--nocapture"])
        .env("KILN_HEADERS_TEST_CHILD", "1")
        .env("KILN_CUDA_INCLUDE", "/nonexistent")
        .output()
        .unwrap();
    assert!(child.status.success(), "{}", String::from_utf8_lossy(&child.stderr));
    assert!(String::from_utf8_lossy(&child.stdout).contains("1 passed"));
}
