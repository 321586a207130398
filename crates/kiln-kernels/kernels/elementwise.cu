// nvrtc: --gpu-architecture=compute_80
// One output element per thread.

extern "C" __global__ void saxpy(float a, const float* x, float* y, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = fmaf(a, x[i], y[i]);
}

extern "C" __global__ void add_i32(const int* a, const int* b, int* c, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) c[i] = a[i] + b[i];
}

extern "C" __global__ void scale_grid_stride(float* x, float s, unsigned n) {
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) x[i] *= s;
}

extern "C" __global__ void relu_f64(const double* x, double* y, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] > 0.0 ? x[i] : 0.0;
}

extern "C" __global__ void clamp_i16(short* x, short lo, short hi, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        short v = x[i];
        x[i] = v < lo ? lo : v > hi ? hi : v;
    }
}

extern "C" __global__ void invert_pixels(uchar4* p, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        uchar4 v = p[i];
        p[i] = make_uchar4(255 - v.x, 255 - v.y, 255 - v.z, v.w);
    }
}

extern "C" __global__ void complex_multiply(const float2* a, const float2* b, float2* c, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        float2 x = a[i], y = b[i];
        c[i] = make_float2(__fsub_rn(__fmul_rn(x.x, y.x), __fmul_rn(x.y, y.y)),
                           __fadd_rn(__fmul_rn(x.x, y.y), __fmul_rn(x.y, y.x)));
    }
}

extern "C" __global__ void copy_float4(const float4* from, float4* to, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        float4 v = from[i];
        to[i] = make_float4(v.w, v.z, v.y, v.x);
    }
}

extern "C" __global__ void divide_i64(const long long* a, const long long* b, long long* q, long long* r, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        q[i] = a[i] / b[i];
        r[i] = a[i] % b[i];
    }
}

extern "C" __global__ void divide_u32(const unsigned* a, const unsigned* b, unsigned* q, unsigned* r, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        q[i] = a[i] / b[i];
        r[i] = a[i] % 10u + a[i] / 7u;
    }
}

extern "C" __global__ void gather(const int* from, const unsigned* index, int* to, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) to[i] = from[index[i]];
}

extern "C" __global__ void bytes_widen(const signed char* a, const unsigned char* b, int* to, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) to[i] = a[i] * 1000 + b[i];
}

extern "C" __global__ void index_3d(unsigned* out, unsigned nx, unsigned ny, unsigned nz) {
    unsigned x = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned y = blockIdx.y * blockDim.y + threadIdx.y;
    unsigned z = blockIdx.z * blockDim.z + threadIdx.z;
    if (x < nx && y < ny && z < nz) out[(z * ny + y) * nx + x] = x | y << 8 | z << 16 | (blockIdx.x + blockIdx.y) << 24;
}
