// Lanes exchange through shared memory without `__syncwarp`.
// launch: grid 1 block 32
// args: in u32 32; out u32 32

extern "C" __global__ void bug_warp_exchange(const unsigned* x, unsigned* y) {
    __shared__ unsigned s[32];
    unsigned t = threadIdx.x;
    s[t] = x[t]; // expect: race
    y[t] = s[t ^ 1]; // expect: race
}

extern "C" __global__ void fixed_warp_exchange(const unsigned* x, unsigned* y) {
    __shared__ unsigned s[32];
    unsigned t = threadIdx.x;
    s[t] = x[t];
    __syncwarp();
    y[t] = s[t ^ 1];
}
