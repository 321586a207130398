// Arithmetic of every type: rounding, conversions, bits, 128-bit carries, transcendental functions.
#include <cuda_fp16.h>
#include <cuda_bf16.h>

extern "C" __global__ void halves(const __half* a, const __half2* b, __half* c, __half2* d, float* e) {
    int i = threadIdx.x;
    c[i] = __hfma(a[i], a[i + 1], __float2half(1.5f));
    d[i] = __hadd2(b[i], __hmul2(b[i + 1], b[i + 2]));
    e[i] = __half2float(hsqrt(a[i])) + __half2float(hexp(a[i])) + (__hgt(a[i], a[i + 1]) ? 1.0f : 0.0f);
    c[i + 1] = __hmax(a[i], __hneg(a[i + 1]));
}

extern "C" __global__ void brains(const __nv_bfloat16* a, __nv_bfloat16* b) {
    int i = threadIdx.x;
    b[i] = __hfma(a[i], a[i], a[i + 1]);
    b[i + 1] = __float2bfloat16(__bfloat162float(a[i]) * 3.0f);
}

extern "C" __global__ void integers(const int* a, const long long* b, int* c, long long* d, unsigned* e) {
    int i = threadIdx.x;
    c[i] = __mulhi(a[i], a[i + 1]) + __mul24(a[i], 3) + abs(a[i]) + min(a[i], 7) + max(a[i], -7) + __ffs(a[i]);
    d[i] = b[i] * b[i + 1] + b[i] / (b[i + 2] | 1) + b[i] % 10 + __mul64hi(b[i], b[i + 1]);
    e[i] = __brev(a[i]) + __byte_perm(a[i], a[i + 1], 0x3210) + __funnelshift_l(a[i], a[i + 1], 5) +
           __popcll(b[i]) + __clzll(b[i]) + __usad(a[i], 3u, 4u) + __dp4a(a[i], a[i + 1], 5) +
           __vadd4(a[i], a[i + 1]) + __rhadd(a[i], 2);
    unsigned __int128 w = (unsigned __int128)(unsigned long long)b[i] * (unsigned long long)b[i + 1];
    w += (unsigned long long)b[i + 2];
    d[i + 1] = (long long)(w >> 64);
}

extern "C" __global__ void floats(const float* a, float* b, int* c) {
    int i = threadIdx.x;
    float x = a[i];
    b[i] = sinf(x) + cosf(x) + expf(x) + logf(x) + powf(x, 1.7f) + tanhf(x) + erff(x) + fmodf(x, 3.0f) + cbrtf(x);
    b[i + 1] = __sinf(x) + __logf(x) + __fdividef(x, 3.0f) + __frcp_rn(x) + __fsqrt_rz(x) + __fadd_ru(x, 1.0f);
    b[i + 2] = __fmaf_rd(x, x, x) + __saturatef(x) + fabsf(x) + copysignf(x, -1.0f) + floorf(x) + rintf(x) + truncf(x);
    c[i] = (int)x + __float2int_rn(x) + (unsigned)x + __float_as_int(x) + (isnan(x) ? 1 : 0) + (int)(long long)x;
}

extern "C" __global__ void doubles(const double* a, double* b, float* c) {
    int i = threadIdx.x;
    double x = a[i];
    b[i] = sin(x) + exp(x) + log(x) + sqrt(x) + pow(x, 2.5) + 1.0 / x + fma(x, x, 1.0) + floor(x) + atan2(x, 2.0);
    c[i] = (float)x + __double2float_rz(x) + (float)__double_as_longlong(x) + __double2hiint(x);
}
