// A scan that looks back: values and flags are volatile, and the sum is published without a fence between it and its flag.
// launch: grid 6 block 32
// args: in u32 192; out u32 6; inout u32 6; inout u32 6

extern "C" __global__ void bug_blocks_volatile_look_back(const unsigned* x, unsigned* y, volatile unsigned* flag, volatile unsigned* sum) {
    unsigned b = blockIdx.x, own = __reduce_add_sync(~0u, x[b * 32 + threadIdx.x]);
    if (threadIdx.x != 0) return;
    unsigned before = 0;
    if (b > 0) {
        while (flag[b - 1] == 0) {}
        __threadfence();
        before = sum[b - 1]; // expect: race
    }
    sum[b] = before + own; // expect: race
    flag[b] = 1;
    y[b] = before + own;
}

extern "C" __global__ void fixed_blocks_volatile_look_back(const unsigned* x, unsigned* y, volatile unsigned* flag, volatile unsigned* sum) {
    unsigned b = blockIdx.x, own = __reduce_add_sync(~0u, x[b * 32 + threadIdx.x]);
    if (threadIdx.x != 0) return;
    unsigned before = 0;
    if (b > 0) {
        while (flag[b - 1] == 0) {}
        __threadfence();
        before = sum[b - 1];
    }
    sum[b] = before + own;
    __threadfence();
    flag[b] = 1;
    y[b] = before + own;
}
