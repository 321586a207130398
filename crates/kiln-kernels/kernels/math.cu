// nvrtc: --gpu-architecture=compute_80
// Functions that are approximated, or built upon such.

extern "C" __global__ void math_f32(const float* in, float* out, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float x = in[i], *o = out + i * 10;
    o[0] = sinf(x); o[1] = cosf(x); o[2] = expf(x * 0.1f); o[3] = logf(fabsf(x) + 1e-3f); o[4] = powf(fabsf(x), 1.7f);
    o[5] = tanhf(x); o[6] = erff(x * 0.2f); o[7] = atan2f(x, 3.0f); o[8] = cbrtf(x); o[9] = rsqrtf(fabsf(x) + 0.5f);
}

extern "C" __global__ void math_f64(const double* in, double* out, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    double x = in[i], *o = out + i * 8;
    o[0] = sin(x); o[1] = cos(x); o[2] = exp(x * 0.1); o[3] = log(fabs(x) + 1e-3); o[4] = pow(fabs(x), 1.7);
    o[5] = tanh(x); o[6] = atan(x); o[7] = hypot(x, 2.5);
}

extern "C" __global__ void math_fast(const float* in, float* out, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float x = in[i], *o = out + i * 7, t;
    o[0] = __sinf(x * 0.1f); o[1] = __cosf(x * 0.1f); o[2] = __expf(x * 0.1f); o[3] = __log2f(fabsf(x) + 2.0f); o[4] = __fdividef(x, 3.0f);
    asm("tanh.approx.f32 %0, %1;" : "=f"(t) : "f"(x * 0.1f)); o[5] = t;
    asm("rcp.approx.f32 %0, %1;" : "=f"(t) : "f"(fabsf(x) + 1.0f)); o[6] = t;
}

extern "C" __global__ void reduce_huge_angle(const float* in, float* out, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = sinf(in[i] * 1e9f);
}
