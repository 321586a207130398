// A write behind a shared array reaches dynamic shared memory.
// launch: grid 1 block 32 shared 128
// args: in u32 32; out u32 32

extern "C" __global__ void bug_bounds_shared_before_dynamic(const unsigned* x, unsigned* y) {
    __shared__ unsigned counts[8];
    extern __shared__ unsigned tile[];
    unsigned t = threadIdx.x;
    tile[t] = x[t];
    if (t <= 8) counts[t] = t; // expect: out-of-bounds
    __syncthreads();
    y[t] = tile[t] + counts[t & 7];
}

extern "C" __global__ void fixed_bounds_shared_before_dynamic(const unsigned* x, unsigned* y) {
    __shared__ unsigned counts[8];
    extern __shared__ unsigned tile[];
    unsigned t = threadIdx.x;
    tile[t] = x[t];
    if (t < 8) counts[t] = t;
    __syncthreads();
    y[t] = tile[t] + counts[t & 7];
}
