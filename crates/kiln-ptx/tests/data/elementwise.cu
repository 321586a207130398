// Plain loads and stores, grid strides, vectors, and parameters of every size.
struct Scale {
    float factor;
    char shift;
};

extern "C" __global__ void saxpy(float a, const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] + y[i];
}

extern "C" __global__ void grid_stride(const float* __restrict__ in, float* __restrict__ out, long long n) {
    for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < n; i += gridDim.x * (long long)blockDim.x)
        out[i] = sqrtf(in[i]) + rsqrtf(in[i]) + __expf(in[i]) / 3.0f;
}

extern "C" __global__ void vectors(const float4* in, float4* out, const double2* d, double2* e, int n) {
    int i = threadIdx.x + blockIdx.x * blockDim.x;
    if (i >= n) return;
    float4 v = in[i];
    out[i] = make_float4(v.w, v.z, v.y, v.x);
    double2 w = d[i];
    e[i] = make_double2(w.y * w.x, -w.x);
}

extern "C" __global__ void by_value(Scale s, signed char a, unsigned short b, bool c, double d, float* out) {
    out[threadIdx.x] = s.factor * a + s.shift * b + (c ? (float)d : 0.0f);
}

template <typename T, int N>
__global__ void unrolled(const T* in, T* out) {
    T sum = 0;
#pragma unroll
    for (int i = 0; i < N; i++) sum += in[i * blockDim.x + threadIdx.x];
    out[threadIdx.x] = sum;
}

template __global__ void unrolled<int, 8>(const int*, int*);
template __global__ void unrolled<double, 3>(const double*, double*);
template __global__ void unrolled<unsigned char, 5>(const unsigned char*, unsigned char*);
