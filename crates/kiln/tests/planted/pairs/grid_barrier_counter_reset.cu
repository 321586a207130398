// A counter of arrived blocks is reset before all blocks have seen it. A block that still polls misses the moment and waits for ever.
// launch: grid 3 block 1
// args: inout u32 1; inout u32 1; inout u32 3

extern "C" __global__ void bug_grid_barrier_counter_reset(unsigned* arrived, unsigned* left, unsigned* y) {
    y[blockIdx.x] = 1;
    __threadfence();
    atomicAdd(arrived, 1);
    while (atomicAdd(arrived, 0) < gridDim.x) {} // expect: endless
    __threadfence();
    if (atomicAdd(left, 1) == 0) atomicExch(arrived, 0);
}

extern "C" __global__ void fixed_grid_barrier_counter_reset(unsigned* arrived, unsigned* left, unsigned* y) {
    y[blockIdx.x] = 1;
    __threadfence();
    atomicAdd(arrived, 1);
    while (atomicAdd(arrived, 0) < gridDim.x) {}
    __threadfence();
    if (atomicAdd(left, 1) == gridDim.x - 1) atomicExch(arrived, 0);
}
