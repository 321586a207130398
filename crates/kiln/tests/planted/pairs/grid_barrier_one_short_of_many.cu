// A sweep in place over the edges of many blocks, with one barrier a sweep where two are needed.
// launch: grid 16 block 64
// args: inout u32 1024; inout u32 1; out u32 1024

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

extern "C" __global__ void bug_grid_barrier_one_short_of_many(unsigned* a, unsigned* arrived, unsigned* y) {
    unsigned i = blockIdx.x * 64 + threadIdx.x, last = 0;
    for (unsigned step = 0; step < 4; step++) {
        a[i] = last + step; // expect: race
        grid_barrier(arrived, (step + 1) * gridDim.x);
        last = a[1023 - i]; // expect: race
    }
    y[i] = last;
}

extern "C" __global__ void fixed_grid_barrier_one_short_of_many(unsigned* a, unsigned* arrived, unsigned* y) {
    unsigned i = blockIdx.x * 64 + threadIdx.x, last = 0;
    for (unsigned step = 0; step < 4; step++) {
        a[i] = last + step;
        grid_barrier(arrived, (2 * step + 1) * gridDim.x);
        last = a[1023 - i];
        grid_barrier(arrived, (2 * step + 2) * gridDim.x);
    }
    y[i] = last;
}
