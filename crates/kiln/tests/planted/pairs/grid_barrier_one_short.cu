// Each step has one barrier of all blocks, before it reads, and needs a second one before the next step writes.
// launch: grid 4 block 32
// args: inout u32 4; out u32 8; inout u32 1

__device__ void grid_barrier(unsigned* arrived, unsigned goal) {
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();
        atomicAdd(arrived, 1);
        while (atomicAdd(arrived, 0) < goal) {}
        __threadfence();
    }
    __syncthreads();
}

extern "C" __global__ void bug_grid_barrier_one_short(unsigned* a, unsigned* y, unsigned* arrived) {
    for (unsigned step = 0; step < 2; step++) {
        if (threadIdx.x == 0) a[blockIdx.x] = blockIdx.x + step; // expect: race
        grid_barrier(arrived, (step + 1) * gridDim.x);
        if (threadIdx.x == 0) y[step * 4 + blockIdx.x] = a[3 - blockIdx.x]; // expect: race
    }
}

extern "C" __global__ void fixed_grid_barrier_one_short(unsigned* a, unsigned* y, unsigned* arrived) {
    for (unsigned step = 0; step < 2; step++) {
        if (threadIdx.x == 0) a[blockIdx.x] = blockIdx.x + step;
        grid_barrier(arrived, (2 * step + 1) * gridDim.x);
        if (threadIdx.x == 0) y[step * 4 + blockIdx.x] = a[3 - blockIdx.x];
        grid_barrier(arrived, (2 * step + 2) * gridDim.x);
    }
}
