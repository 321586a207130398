// The row of a tile in shared memory before its first one is the last row of the array that is declared before it.
// launch: grid 1 block 32
// args: in u32 32; out u32 32

extern "C" __global__ void bug_bounds_shared_row(const unsigned* x, unsigned* y) {
    __shared__ unsigned halo[4][8];
    __shared__ unsigned tile[4][8];
    unsigned c = threadIdx.x % 8, r = threadIdx.x / 8;
    halo[r][c] = 0;
    tile[r][c] = x[threadIdx.x];
    __syncthreads();
    y[threadIdx.x] = tile[(int)r - 1][c] + halo[r][c]; // expect: out-of-bounds
}

extern "C" __global__ void fixed_bounds_shared_row(const unsigned* x, unsigned* y) {
    __shared__ unsigned halo[4][8];
    __shared__ unsigned tile[4][8];
    unsigned c = threadIdx.x % 8, r = threadIdx.x / 8;
    halo[r][c] = 0;
    tile[r][c] = x[threadIdx.x];
    __syncthreads();
    y[threadIdx.x] = tile[r == 0 ? 3 : r - 1][c] + halo[r][c];
}
