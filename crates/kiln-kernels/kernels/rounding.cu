// nvrtc: --gpu-architecture=compute_80
// Every rounding of the IEEE operations.

extern "C" __global__ void round_f32(const float* a, const float* b, const float* c, float* out, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float x = a[i], y = b[i], z = c[i], *o = out + i * 24;
    o[0] = __fadd_rn(x, y); o[1] = __fadd_rz(x, y); o[2] = __fadd_rd(x, y); o[3] = __fadd_ru(x, y);
    o[4] = __fmul_rn(x, y); o[5] = __fmul_rz(x, y); o[6] = __fmul_rd(x, y); o[7] = __fmul_ru(x, y);
    o[8] = __fmaf_rn(x, y, z); o[9] = __fmaf_rz(x, y, z); o[10] = __fmaf_rd(x, y, z); o[11] = __fmaf_ru(x, y, z);
    o[12] = __fdiv_rn(x, y); o[13] = __fdiv_rz(x, y); o[14] = __fdiv_rd(x, y); o[15] = __fdiv_ru(x, y);
    o[16] = __fsqrt_rn(x); o[17] = __fsqrt_rz(x); o[18] = __fsqrt_rd(x); o[19] = __fsqrt_ru(x);
    o[20] = __frcp_rn(x); o[21] = __frcp_rz(x); o[22] = __frcp_rd(x); o[23] = __frcp_ru(x);
}

extern "C" __global__ void round_f64(const double* a, const double* b, const double* c, double* out, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    double x = a[i], y = b[i], z = c[i], *o = out + i * 24;
    o[0] = __dadd_rn(x, y); o[1] = __dadd_rz(x, y); o[2] = __dadd_rd(x, y); o[3] = __dadd_ru(x, y);
    o[4] = __dmul_rn(x, y); o[5] = __dmul_rz(x, y); o[6] = __dmul_rd(x, y); o[7] = __dmul_ru(x, y);
    o[8] = __fma_rn(x, y, z); o[9] = __fma_rz(x, y, z); o[10] = __fma_rd(x, y, z); o[11] = __fma_ru(x, y, z);
    o[12] = __ddiv_rn(x, y); o[13] = __ddiv_rz(x, y); o[14] = __ddiv_rd(x, y); o[15] = __ddiv_ru(x, y);
    o[16] = __dsqrt_rn(x); o[17] = __dsqrt_rz(x); o[18] = __dsqrt_rd(x); o[19] = __dsqrt_ru(x);
    o[20] = __drcp_rn(x); o[21] = __drcp_rz(x); o[22] = __drcp_rd(x); o[23] = __drcp_ru(x);
}

extern "C" __global__ void flush_f32(const float* a, const float* b, float* out, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float s, m, f, c;
    asm("add.ftz.f32 %0, %1, %2;" : "=f"(s) : "f"(a[i]), "f"(b[i]));
    asm("mul.ftz.f32 %0, %1, %2;" : "=f"(m) : "f"(a[i]), "f"(b[i]));
    asm("fma.rn.ftz.sat.f32 %0, %1, %2, %1;" : "=f"(f) : "f"(a[i]), "f"(b[i]));
    asm("max.ftz.f32 %0, %1, %2;" : "=f"(c) : "f"(a[i]), "f"(b[i]));
    out[i * 4] = s;
    out[i * 4 + 1] = m;
    out[i * 4 + 2] = f;
    out[i * 4 + 3] = c;
}

extern "C" __global__ void compare_f32(const float* a, const float* b, unsigned* out, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float x = a[i], y = b[i];
    unsigned r = (x < y) | (x <= y) << 1 | (x == y) << 2 | (x != y) << 3 | !(x < y) << 4 | !(x >= y) << 5;
    r |= isnan(x) << 6 | isinf(x) << 7 | signbit(x) << 8 | (fminf(x, y) == x) << 9 | (fmaxf(x, y) == y) << 10;
    out[i] = r;
}

extern "C" __global__ void special_values(const float* a, const float* b, unsigned* out, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float x = a[i], y = b[i];
    unsigned* o = out + i * 8;
    o[0] = __float_as_uint(__fadd_rn(x, y));
    o[1] = __float_as_uint(__fmul_rn(x, y));
    o[2] = __float_as_uint(__fdiv_rn(x, y));
    o[3] = __float_as_uint(fminf(x, y));
    o[4] = __float_as_uint(fmaxf(x, y));
    o[5] = __float_as_uint(__fsqrt_rn(x));
    o[6] = __float_as_uint(copysignf(x, y));
    double wide;
    asm("cvt.f64.f32 %0, %1;" : "=d"(wide) : "f"(x));
    o[7] = __float_as_uint(__double2float_rn(wide));
}
