// nvrtc: --gpu-architecture=compute_90
// Half precision.

#include <cuda_fp16.h>
#include <cuda_bf16.h>

extern "C" __global__ void half_axpy(const __half* x, __half* y, float a, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = __hfma(__float2half_rn(a), x[i], y[i]);
}

extern "C" __global__ void half2_arithmetic(const __half2* a, const __half2* b, __half2* out, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    out[i * 5] = __hadd2(a[i], b[i]);
    out[i * 5 + 1] = __hsub2(a[i], b[i]);
    out[i * 5 + 2] = __hmul2(a[i], b[i]);
    out[i * 5 + 3] = __hfma2(a[i], b[i], a[i]);
    out[i * 5 + 4] = __hmax2(__hneg2(a[i]), __hmin2(a[i], b[i]));
}

extern "C" __global__ void bf16_arithmetic(const __nv_bfloat16* a, const __nv_bfloat16* b, __nv_bfloat16* out, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    out[i * 4] = __hadd(a[i], b[i]);
    out[i * 4 + 1] = __hmul(a[i], b[i]);
    out[i * 4 + 2] = __hfma(a[i], b[i], b[i]);
    out[i * 4 + 3] = __hmax(a[i], b[i]);
}

extern "C" __global__ void half_round(const float* in, unsigned short* out, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float v = in[i];
    out[i * 8] = __half_as_ushort(__float2half_rn(v));
    out[i * 8 + 1] = __half_as_ushort(__float2half_rz(v));
    out[i * 8 + 2] = __half_as_ushort(__float2half_rd(v));
    out[i * 8 + 3] = __half_as_ushort(__float2half_ru(v));
    out[i * 8 + 4] = __bfloat16_as_ushort(__float2bfloat16_rn(v));
    out[i * 8 + 5] = __bfloat16_as_ushort(__float2bfloat16_rz(v));
    out[i * 8 + 6] = __bfloat16_as_ushort(__float2bfloat16_rd(v));
    out[i * 8 + 7] = __bfloat16_as_ushort(__float2bfloat16_ru(v));
}

extern "C" __global__ void half_widen(const unsigned short* in, float* out, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    out[i * 2] = __half2float(__ushort_as_half(in[i]));
    out[i * 2 + 1] = __bfloat162float(__ushort_as_bfloat16(in[i]));
}

extern "C" __global__ void half_compare(const __half* a, const __half* b, unsigned* out, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned r = 0;
    r |= __hlt(a[i], b[i]) << 0 | __hle(a[i], b[i]) << 1 | __heq(a[i], b[i]) << 2 | __hne(a[i], b[i]) << 3;
    r |= __hltu(a[i], b[i]) << 4 | __hequ(a[i], b[i]) << 5 | __hisnan(a[i]) << 6 | (unsigned)__half2int_rz(a[i]) << 8;
    out[i] = r;
}

extern "C" __global__ void half_atomic(const __half2* in, __half2* sum, __nv_bfloat162* bsum, unsigned n) {
    for (unsigned i = threadIdx.x; i < n; i += blockDim.x) {
        atomicAdd(sum, in[i]);
        atomicAdd(bsum, __floats2bfloat162_rn(__low2float(in[i]), __high2float(in[i])));
    }
}
