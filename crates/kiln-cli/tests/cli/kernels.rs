//! The kernels these tests run.

use std::path::Path;

/// Kernels with planted mistakes, and twins without; their PTX has source lines.
pub(crate) fn faulty() -> String {
    beside("../kiln-ptx/tests/kernels/checks.ptx")
}

/// The line of the source of [`faulty`] that ends with `// marker`.
pub(crate) fn line(marker: &str) -> u64 {
    let source = std::fs::read_to_string(beside("../kiln-ptx/tests/kernels/checks.cu")).unwrap();
    let end = format!("// {marker}");
    source.lines().position(|line| line.ends_with(&end)).unwrap() as u64 + 1
}

/// Kernels that are right.
pub(crate) fn right(stem: &str) -> String {
    beside(&format!("../kiln-kernels/kernels/{stem}.ptx"))
}

fn beside(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    path.to_str().unwrap().to_owned()
}

/// PTX with instructions for tensor cores that only a GPU executes.
pub(crate) fn tensor() -> String {
    beside("tests/cli/tensor_core.ptx")
}

/// CUDA C with a mangled kernel, an overloaded pair, a template and a kernel that prints.
pub(crate) const CUDA_C: &str = r#"
#include "factor.h"

__global__ void saxpy(float a, const float* x, float* y, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = FACTOR * a * x[i] + y[i];
}

namespace lib {
__global__ void twice(float* y) { y[threadIdx.x] *= 2.0f; }
}

__global__ void same(int* y) { y[threadIdx.x] = 1; }
__global__ void same(float* y) { y[threadIdx.x] = 1.0f; }

template <typename T>
__global__ void fill(T* y, T value) { y[threadIdx.x] = value; }

extern "C" __global__ void greet(int n) {
    if (threadIdx.x < n) printf("thread %u of %d\n", threadIdx.x, n);
}
"#;

/// `store(char* to, int at)`: stores 7 in a byte, which any array may have.
pub(crate) const STORE_BYTE: &str = "
    .version 8.0
    .target sm_80
    .address_size 64
    .visible .entry store(.param .u64 to, .param .u32 at) {
        .reg .b32 %r<2>;
        .reg .b64 %rd<4>;
        ld.param.u64 %rd1, [to];
        ld.param.u32 %r0, [at];
        cvt.u64.u32 %rd2, %r0;
        cvta.to.global.u64 %rd1, %rd1;
        add.s64 %rd3, %rd1, %rd2;
        mov.u32 %r1, 7;
        st.global.u8 [%rd3], %r1;
        ret;
    }";
