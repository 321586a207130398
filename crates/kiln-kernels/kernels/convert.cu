// nvrtc: --gpu-architecture=compute_80
// Conversions between numbers.

extern "C" __global__ void float_to_integer(const float* in, int* out, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float v = in[i];
    int* o = out + i * 8;
    o[0] = __float2int_rn(v); o[1] = __float2int_rz(v); o[2] = __float2int_rd(v); o[3] = __float2int_ru(v);
    o[4] = (int)__float2uint_rn(v); o[5] = (int)__float2uint_rz(v); o[6] = (int)__float2uint_rd(v); o[7] = (int)__float2uint_ru(v);
}

extern "C" __global__ void double_to_integer(const double* in, long long* out, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    double v = in[i];
    long long* o = out + i * 8;
    o[0] = __double2ll_rn(v); o[1] = __double2ll_rz(v); o[2] = __double2ll_rd(v); o[3] = __double2ll_ru(v);
    o[4] = (long long)__double2ull_rn(v); o[5] = (long long)__double2ull_rz(v); o[6] = __double2int_rn(v); o[7] = __double2uint_rz(v);
}

extern "C" __global__ void integer_to_float(const long long* in, float* out, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    long long v = in[i];
    float* o = out + i * 8;
    o[0] = __ll2float_rn(v); o[1] = __ll2float_rz(v); o[2] = __ll2float_rd(v); o[3] = __ll2float_ru(v);
    o[4] = __int2float_rn((int)v); o[5] = __uint2float_rz((unsigned)v); o[6] = __ull2float_ru((unsigned long long)v); o[7] = (float)(short)v;
}

extern "C" __global__ void integer_to_double(const long long* in, double* out, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    long long v = in[i];
    double* o = out + i * 6;
    o[0] = __ll2double_rn(v); o[1] = __ll2double_rd(v); o[2] = __ull2double_ru((unsigned long long)v); o[3] = __int2double_rn((int)v);
    o[4] = (double)(unsigned)v; o[5] = (double)(signed char)v;
}

extern "C" __global__ void float_whole(const float* in, float* out, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float v = in[i];
    float* o = out + i * 6;
    o[0] = floorf(v); o[1] = ceilf(v); o[2] = truncf(v); o[3] = rintf(v); o[4] = roundf(v); o[5] = __saturatef(v);
}

extern "C" __global__ void narrow(const double* in, float* out, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float* o = out + i * 4;
    o[0] = __double2float_rn(in[i]); o[1] = __double2float_rz(in[i]); o[2] = __double2float_rd(in[i]); o[3] = __double2float_ru(in[i]);
}

extern "C" __global__ void integer_widths(const long long* in, long long* out, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    long long v = in[i], *o = out + i * 8;
    o[0] = (signed char)v; o[1] = (unsigned char)v; o[2] = (short)v; o[3] = (unsigned short)v; o[4] = (int)v; o[5] = (unsigned)v;
    int clamped, tf;
    asm("cvt.sat.u8.s32 %0, %1;" : "=r"(clamped) : "r"((int)v));
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(tf) : "f"((float)v));
    o[6] = clamped;
    o[7] = tf;
}
