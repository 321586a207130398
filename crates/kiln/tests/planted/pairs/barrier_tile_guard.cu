// A barrier in the guard of a tile: in the last pass whole warps have no element, go around it, and on in the loop. The twin has it outside of the guard.
// launch: grid 1 block 128
// args: in u32 448; out u32 128; value u32 448; value u32 4

extern "C" __global__ void bug_barrier_tile_guard(const unsigned* x, unsigned* y, unsigned n, unsigned tiles) {
    __shared__ unsigned s[128];
    unsigned t = threadIdx.x, sum = 0;
    for (unsigned tile = 0; tile < tiles; ++tile) {
        if (tile * 128 + t < n) {
            s[t] = x[tile * 128 + t];
            __syncthreads(); // expect: barrier
        }
        sum += s[t];
    }
    y[t] = sum;
}

extern "C" __global__ void fixed_barrier_tile_guard(const unsigned* x, unsigned* y, unsigned n, unsigned tiles) {
    __shared__ unsigned s[128];
    unsigned t = threadIdx.x, sum = 0;
    for (unsigned tile = 0; tile < tiles; ++tile) {
        if (tile * 128 + t < n) s[t] = x[tile * 128 + t];
        __syncthreads();
        sum += s[t];
    }
    y[t] = sum;
}
