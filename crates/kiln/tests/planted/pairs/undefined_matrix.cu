// Of a tile only the first eight rows were loaded. Those of the product that the other rows give must be dropped.
// launch: grid 1 block 32
// args: in u32 32; returned u32 32

extern "C" __global__ void bug_undefined_matrix(const unsigned* x, unsigned* y) {
    __shared__ unsigned tile[64];
    unsigned t = threadIdx.x, sum[4];
    if (t < 32) tile[t] = x[t];
    __syncwarp();
    unsigned upper = ((volatile unsigned*)tile)[t], lower = ((volatile unsigned*)tile)[t + 32]; // expect: uninitialised
    asm volatile("mma.sync.aligned.m16n8k16.row.col.s32.u8.u8.s32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%7, %7, %7, %7};" // expect: uninitialised
                 : "=r"(sum[0]), "=r"(sum[1]), "=r"(sum[2]), "=r"(sum[3]) : "r"(upper), "r"(lower), "r"(x[t]), "r"(0)); // expect: uninitialised
    y[t] = sum[0] + sum[2]; // expect: uninitialised
}

extern "C" __global__ void fixed_undefined_matrix(const unsigned* x, unsigned* y) {
    __shared__ unsigned tile[64];
    unsigned t = threadIdx.x, sum[4];
    if (t < 32) tile[t] = x[t];
    __syncwarp();
    unsigned upper = ((volatile unsigned*)tile)[t], lower = ((volatile unsigned*)tile)[t + 32];
    asm volatile("mma.sync.aligned.m16n8k16.row.col.s32.u8.u8.s32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%7, %7, %7, %7};"
                 : "=r"(sum[0]), "=r"(sum[1]), "=r"(sum[2]), "=r"(sum[3]) : "r"(upper), "r"(lower), "r"(x[t]), "r"(0));
    y[t] = sum[0] + sum[1];
}
