// nvrtc: --gpu-architecture=compute_80
// Prefix sums.

extern "C" __global__ void scan_hillis_steele(const int* in, int* out) {
    __shared__ int s[2][256];
    unsigned t = threadIdx.x, base = blockIdx.x * 256;
    int from = 0;
    s[0][t] = in[base + t];
    __syncthreads();
    for (unsigned k = 1; k < 256; k *= 2) {
        int to = 1 - from;
        s[to][t] = t >= k ? s[from][t] + s[from][t - k] : s[from][t];
        from = to;
        __syncthreads();
    }
    out[base + t] = s[from][t];
}

extern "C" __global__ void scan_blelloch(const unsigned* in, unsigned* out) {
    extern __shared__ unsigned s[];
    unsigned t = threadIdx.x, n = blockDim.x * 2, base = blockIdx.x * n, step = 1;
    s[2 * t] = in[base + 2 * t];
    s[2 * t + 1] = in[base + 2 * t + 1];
    for (unsigned d = n >> 1; d > 0; d >>= 1) {
        __syncthreads();
        if (t < d) s[step * (2 * t + 2) - 1] += s[step * (2 * t + 1) - 1];
        step *= 2;
    }
    if (t == 0) s[n - 1] = 0;
    for (unsigned d = 1; d < n; d *= 2) {
        step >>= 1;
        __syncthreads();
        if (t < d) {
            unsigned a = step * (2 * t + 1) - 1, b = step * (2 * t + 2) - 1, old = s[a];
            s[a] = s[b];
            s[b] += old;
        }
    }
    __syncthreads();
    out[base + 2 * t] = s[2 * t];
    out[base + 2 * t + 1] = s[2 * t + 1];
}

extern "C" __global__ void scan_warp(const float* in, float* out) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % 32;
    float v = in[i];
    for (unsigned k = 1; k < 32; k *= 2) {
        float u = __shfl_up_sync(0xffffffffu, v, k);
        if (lane >= k) v = __fadd_rn(v, u);
    }
    out[i] = v;
}

// Each block waits for the sum of the one before it, which it reads from global memory.
extern "C" __global__ void scan_look_back(const unsigned* in, unsigned* out, volatile unsigned* sums, volatile unsigned* flags) {
    __shared__ unsigned s[128], before;
    unsigned t = threadIdx.x, i = blockIdx.x * 128 + t;
    s[t] = in[i];
    __syncthreads();
    for (unsigned k = 1; k < 128; k *= 2) {
        unsigned v = t >= k ? s[t - k] : 0;
        __syncthreads();
        s[t] += v;
        __syncthreads();
    }
    if (t == 0) {
        unsigned sum = 0;
        if (blockIdx.x > 0) {
            while (flags[blockIdx.x - 1] == 0) {}
            __threadfence();
            sum = sums[blockIdx.x - 1];
        }
        sums[blockIdx.x] = sum + s[127];
        __threadfence();
        flags[blockIdx.x] = 1;
        before = sum;
    }
    __syncthreads();
    out[i] = before + s[t];
}
