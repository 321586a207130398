// A cooperative kernel with one barrier a step, where a second one is needed before the next step writes.
// launch: grid 4 block 32 cooperative
// args: inout u32 4; out u32 8

// A barrier of all blocks in the workspace that a cooperative launch has.
__device__ void grid_barrier() {
    unsigned high, low;
    asm volatile("mov.u32 %0, %%envreg1;" : "=r"(high));
    asm volatile("mov.u32 %0, %%envreg2;" : "=r"(low));
    unsigned* word = (unsigned*)((unsigned long long)high << 32 | low);
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();
        unsigned before = atomicAdd(word, blockIdx.x == 0 ? 0x80000000 - (gridDim.x - 1) : 1);
        while (((before ^ atomicAdd(word, 0)) & 0x80000000) == 0) {}
        __threadfence();
    }
    __syncthreads();
}

extern "C" __global__ void bug_grid_cooperative_one_short(unsigned* a, unsigned* y) {
    for (unsigned step = 0; step < 2; step++) {
        if (threadIdx.x == 0) a[blockIdx.x] = blockIdx.x + step; // expect: race
        grid_barrier();
        if (threadIdx.x == 0) y[step * 4 + blockIdx.x] = a[3 - blockIdx.x]; // expect: race
    }
}

extern "C" __global__ void fixed_grid_cooperative_one_short(unsigned* a, unsigned* y) {
    for (unsigned step = 0; step < 2; step++) {
        if (threadIdx.x == 0) a[blockIdx.x] = blockIdx.x + step;
        grid_barrier();
        if (threadIdx.x == 0) y[step * 4 + blockIdx.x] = a[3 - blockIdx.x];
        grid_barrier();
    }
}
