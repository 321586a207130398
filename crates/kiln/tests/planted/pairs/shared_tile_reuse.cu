// The tile of a matrix product is filled again before all threads have read it.
// launch: grid 1 block 16,16
// args: in u32 1024; in u32 1024; out u32 256

extern "C" __global__ void bug_shared_tile_reuse(const unsigned* a, const unsigned* b, unsigned* c) {
    __shared__ unsigned ta[16][16], tb[16][16];
    unsigned x = threadIdx.x, y = threadIdx.y, sum = 0;
    for (unsigned k = 0; k < 64; k += 16) {
        ta[y][x] = a[y * 64 + k + x]; // expect: race
        tb[y][x] = b[(k + y) * 16 + x]; // expect: race
        __syncthreads();
        for (unsigned i = 0; i < 16; ++i) sum += ta[y][i] * tb[i][x]; // expect: race
    }
    c[y * 16 + x] = sum;
}

extern "C" __global__ void fixed_shared_tile_reuse(const unsigned* a, const unsigned* b, unsigned* c) {
    __shared__ unsigned ta[16][16], tb[16][16];
    unsigned x = threadIdx.x, y = threadIdx.y, sum = 0;
    for (unsigned k = 0; k < 64; k += 16) {
        ta[y][x] = a[y * 64 + k + x];
        tb[y][x] = b[(k + y) * 16 + x];
        __syncthreads();
        for (unsigned i = 0; i < 16; ++i) sum += ta[y][i] * tb[i][x];
        __syncthreads();
    }
    c[y * 16 + x] = sum;
}
