// A grid barrier in a launch that is not cooperative.
// launch: grid 4 block 32 cooperative
// launch bug: grid 4 block 32
// args: inout u32 128; out u32 128

// A barrier of all blocks in the workspace that a cooperative launch has; elsewhere there is none.
__device__ void grid_barrier() {
    unsigned high, low;
    asm volatile("mov.u32 %0, %%envreg1;" : "=r"(high));
    asm volatile("mov.u32 %0, %%envreg2;" : "=r"(low));
    unsigned* word = (unsigned*)((unsigned long long)high << 32 | low);
    if (word == nullptr) asm volatile("trap;"); // expect: trap
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();
        unsigned before = atomicAdd(word, blockIdx.x == 0 ? 0x80000000 - (gridDim.x - 1) : 1);
        while (((before ^ atomicAdd(word, 0)) & 0x80000000) == 0) {}
        __threadfence();
    }
    __syncthreads();
}

extern "C" __global__ void bug_grid_barrier_without_cooperation(unsigned* tmp, unsigned* y) {
    unsigned i = blockIdx.x * 32 + threadIdx.x;
    tmp[i] = i;
    grid_barrier();
    y[i] = tmp[127 - i];
}

extern "C" __global__ void fixed_grid_barrier_without_cooperation(unsigned* tmp, unsigned* y) {
    unsigned i = blockIdx.x * 32 + threadIdx.x;
    tmp[i] = i;
    grid_barrier();
    y[i] = tmp[127 - i];
}
