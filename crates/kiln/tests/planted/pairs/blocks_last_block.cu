// The last block of a reduction reads partial sums that no fence has published.
// launch: grid 4 block 64
// args: in u32 256; inout u32 4; inout u32 1; out u32 1

extern "C" __global__ void bug_blocks_last_block(const unsigned* x, unsigned* parts, unsigned* count, unsigned* y) {
    __shared__ unsigned sum, last;
    unsigned t = threadIdx.x;
    if (t == 0) sum = 0;
    __syncthreads();
    atomicAdd(&sum, x[blockIdx.x * 64 + t]);
    __syncthreads();
    if (t == 0) {
        parts[blockIdx.x] = sum; // expect: race
        last = atomicAdd(count, 1) == 3;
    }
    __syncthreads();
    if (last && t == 0) {
        unsigned all = 0;
        for (unsigned i = 0; i < 4; ++i) all += parts[i]; // expect: race
        y[0] = all;
    }
}

extern "C" __global__ void fixed_blocks_last_block(const unsigned* x, unsigned* parts, unsigned* count, unsigned* y) {
    __shared__ unsigned sum, last;
    unsigned t = threadIdx.x;
    if (t == 0) sum = 0;
    __syncthreads();
    atomicAdd(&sum, x[blockIdx.x * 64 + t]);
    __syncthreads();
    if (t == 0) {
        parts[blockIdx.x] = sum;
        __threadfence();
        last = atomicAdd(count, 1) == 3;
    }
    __syncthreads();
    if (last && t == 0) {
        __threadfence();
        unsigned all = 0;
        for (unsigned i = 0; i < 4; ++i) all += parts[i];
        y[0] = all;
    }
}
