// A cooperative kernel reads what other blocks wrote, without a grid barrier.
// launch: grid 4 block 32 cooperative
// args: inout u32 128; out u32 128

// A barrier of all blocks in the workspace that a cooperative launch has; elsewhere there is none.
__device__ void grid_barrier() {
    unsigned high, low;
    asm volatile("mov.u32 %0, %%envreg1;" : "=r"(high));
    asm volatile("mov.u32 %0, %%envreg2;" : "=r"(low));
    unsigned* word = (unsigned*)((unsigned long long)high << 32 | low);
    if (word == nullptr) asm volatile("trap;");
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();
        unsigned before = atomicAdd(word, blockIdx.x == 0 ? 0x80000000 - (gridDim.x - 1) : 1);
        while (((before ^ atomicAdd(word, 0)) & 0x80000000) == 0) {}
        __threadfence();
    }
    __syncthreads();
}

extern "C" __global__ void bug_grid_phase_without_barrier(unsigned* tmp, unsigned* y) {
    unsigned i = blockIdx.x * 32 + threadIdx.x;
    tmp[i] = i; // expect: race
    __syncthreads();
    y[i] = tmp[127 - i]; // expect: race
}

extern "C" __global__ void fixed_grid_phase_without_barrier(unsigned* tmp, unsigned* y) {
    unsigned i = blockIdx.x * 32 + threadIdx.x;
    tmp[i] = i;
    grid_barrier();
    y[i] = tmp[127 - i];
}
