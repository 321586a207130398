// A tile is read across before all of it is written.
// launch: grid 1 block 32,8
// args: in u32 1024; out u32 1024

extern "C" __global__ void bug_shared_transpose(const unsigned* x, unsigned* y) {
    __shared__ unsigned tile[32][33];
    for (unsigned r = threadIdx.y; r < 32; r += 8) tile[r][threadIdx.x] = x[r * 32 + threadIdx.x]; // expect: race
    for (unsigned r = threadIdx.y; r < 32; r += 8) y[r * 32 + threadIdx.x] = tile[threadIdx.x][r]; // expect: race
}

extern "C" __global__ void fixed_shared_transpose(const unsigned* x, unsigned* y) {
    __shared__ unsigned tile[32][33];
    for (unsigned r = threadIdx.y; r < 32; r += 8) tile[r][threadIdx.x] = x[r * 32 + threadIdx.x];
    __syncthreads();
    for (unsigned r = threadIdx.y; r < 32; r += 8) y[r * 32 + threadIdx.x] = tile[threadIdx.x][r];
}
