// A barrier in a branch: whole warps go around it and on with the code behind it. The twin lets them return early.
// launch: grid 1 block 128
// args: in u32 128; out u32 128; value u32 3

extern "C" __global__ void bug_barrier_warps_go_around(const unsigned* x, unsigned* y, unsigned warps) {
    __shared__ unsigned s[128];
    unsigned t = threadIdx.x;
    s[t] = x[t]; // expect: race
    if (t / 32 < warps) __syncthreads(); // expect: barrier
    y[t] = s[t ^ 31] * 2; // expect: race
}

extern "C" __global__ void fixed_barrier_warps_go_around(const unsigned* x, unsigned* y, unsigned warps) {
    __shared__ unsigned s[128];
    unsigned t = threadIdx.x;
    s[t] = x[t];
    if (t / 32 >= warps) {
        y[t] = 0;
        return;
    }
    __syncthreads();
    y[t] = s[t ^ 31] * 2;
}
