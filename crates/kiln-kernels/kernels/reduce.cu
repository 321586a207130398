// nvrtc: --gpu-architecture=compute_80
// Reductions of blocks and warps.

extern "C" __global__ void block_sum(const float* in, float* out, unsigned n) {
    __shared__ float s[256];
    unsigned t = threadIdx.x, i = blockIdx.x * blockDim.x * 2 + t;
    float v = 0.0f;
    if (i < n) v = in[i];
    if (i + blockDim.x < n) v += in[i + blockDim.x];
    s[t] = v;
    __syncthreads();
    for (unsigned k = blockDim.x / 2; k > 0; k >>= 1) {
        if (t < k) s[t] += s[t + k];
        __syncthreads();
    }
    if (t == 0) out[blockIdx.x] = s[0];
}

extern "C" __global__ void warp_sum(const int* in, int* out, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    int v = i < n ? in[i] : 0;
    for (int k = 16; k > 0; k >>= 1) v += __shfl_down_sync(0xffffffffu, v, k);
    if (threadIdx.x % 32 == 0) out[i / 32] = v;
}

extern "C" __global__ void block_max_f64(const double* in, double* out, unsigned n) {
    extern __shared__ double m[];
    unsigned t = threadIdx.x;
    double v = -1e308;
    for (unsigned i = blockIdx.x * blockDim.x + t; i < n; i += gridDim.x * blockDim.x) v = fmax(v, in[i]);
    m[t] = v;
    __syncthreads();
    for (unsigned k = blockDim.x / 2; k > 0; k /= 2) {
        if (t < k) m[t] = fmax(m[t], m[t + k]);
        __syncthreads();
    }
    if (t == 0) out[blockIdx.x] = m[0];
}

extern "C" __global__ void dot_atomic(const int* a, const int* b, unsigned long long* out, unsigned n) {
    __shared__ unsigned long long partial[8];
    unsigned t = threadIdx.x;
    unsigned long long v = 0;
    for (unsigned i = blockIdx.x * blockDim.x + t; i < n; i += gridDim.x * blockDim.x) v += (long long)a[i] * b[i];
    for (int k = 16; k > 0; k >>= 1) v += __shfl_xor_sync(0xffffffffu, v, k);
    if (t % 32 == 0) partial[t / 32] = v;
    __syncthreads();
    if (t == 0) {
        unsigned long long sum = 0;
        for (unsigned w = 0; w < blockDim.x / 32; ++w) sum += partial[w];
        atomicAdd(out, sum);
    }
}

extern "C" __global__ void redux(const int* in, int* out) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x, w = i / 32;
    int v = in[i];
    int sum = __reduce_add_sync(0xffffffffu, v);
    int lo = __reduce_min_sync(0xffffffffu, v);
    int hi = __reduce_max_sync(0xffffffffu, v);
    unsigned a = __reduce_and_sync(0xffffffffu, (unsigned)v | 0xff);
    unsigned o = __reduce_or_sync(0xffffffffu, (unsigned)v & 0xff0000);
    unsigned x = __reduce_xor_sync(0xffffffffu, (unsigned)v);
    if (i % 32 == 0) {
        out[w * 6] = sum;
        out[w * 6 + 1] = lo;
        out[w * 6 + 2] = hi;
        out[w * 6 + 3] = a;
        out[w * 6 + 4] = o;
        out[w * 6 + 5] = x;
    }
}

extern "C" __global__ void arg_min(const unsigned* in, unsigned long long* best, unsigned n) {
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        atomicMin(best, (unsigned long long)in[i] << 32 | i);
}

extern "C" __global__ void count_barrier(const int* in, int* out) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    int positive = in[i] > 0;
    int count = __syncthreads_count(positive);
    int all = __syncthreads_and(in[i] > -900);
    int any = __syncthreads_or(in[i] > 990);
    if (threadIdx.x == 0) out[blockIdx.x] = count | all << 16 | any << 17;
}
