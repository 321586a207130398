// An index one past the end of a shared array reaches the array that is declared behind it.
// launch: grid 1 block 32
// args: in u32 32; out u32 32

extern "C" __global__ void bug_bounds_shared_neighbour(const unsigned* x, unsigned* y) {
    __shared__ unsigned tile[32];
    __shared__ unsigned sums[32];
    unsigned t = threadIdx.x;
    sums[t] = 0;
    tile[t] = x[t];
    __syncthreads();
    sums[t] = tile[t + 1]; // expect: out-of-bounds
    __syncthreads();
    y[t] = sums[t] + tile[t];
}

extern "C" __global__ void fixed_bounds_shared_neighbour(const unsigned* x, unsigned* y) {
    __shared__ unsigned tile[33];
    __shared__ unsigned sums[32];
    unsigned t = threadIdx.x;
    sums[t] = 0;
    tile[t] = x[t];
    if (t == 0) tile[32] = 0;
    __syncthreads();
    sums[t] = tile[t + 1];
    __syncthreads();
    y[t] = sums[t] + tile[t];
}
