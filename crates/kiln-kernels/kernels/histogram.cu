// nvrtc: --gpu-architecture=compute_80
// Histograms with atomics.

extern "C" __global__ void histogram_shared(const unsigned char* in, unsigned* bins, unsigned n) {
    __shared__ unsigned local[256];
    local[threadIdx.x] = 0;
    __syncthreads();
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        atomicAdd(&local[in[i]], 1u);
    __syncthreads();
    atomicAdd(&bins[threadIdx.x], local[threadIdx.x]);
}

extern "C" __global__ void histogram_global(const float* in, unsigned* bins, unsigned count, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        int bin = (int)(in[i] * count);
        if (bin >= 0 && bin < (int)count) atomicAdd(&bins[bin], 1u);
    }
}

extern "C" __global__ void histogram_match(const unsigned* in, unsigned* bins, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned bin = i < n ? in[i] % 16 : 16;
    unsigned peers = __match_any_sync(0xffffffffu, bin);
    unsigned leader = __ffs(peers) - 1;
    if (bin < 16 && threadIdx.x % 32 == leader) atomicAdd(&bins[bin], __popc(peers));
}
