// A barrier with a reversed sense: the last block lets the others go before it resets the counter. A block that comes back
// fast arrives first, its arrival is lost, and all wait for ever.
// launch: grid 3 block 1
// args: inout u32 1; inout u32 1; inout u32 3

extern "C" __global__ void bug_grid_barrier_sense(unsigned* arrived, unsigned* sense, unsigned* y) {
    for (unsigned step = 1; step <= 6; step++) {
        y[blockIdx.x] += step;
        __threadfence();
        if (atomicAdd(arrived, 1) == gridDim.x - 1) {
            atomicExch(sense, step);
            atomicExch(arrived, 0);
        } else {
            while (atomicAdd(sense, 0) < step) {} // expect: endless
        }
        __threadfence();
    }
}

extern "C" __global__ void fixed_grid_barrier_sense(unsigned* arrived, unsigned* sense, unsigned* y) {
    for (unsigned step = 1; step <= 6; step++) {
        y[blockIdx.x] += step;
        __threadfence();
        if (atomicAdd(arrived, 1) == gridDim.x - 1) {
            atomicExch(arrived, 0);
            __threadfence();
            atomicExch(sense, step);
        } else {
            while (atomicAdd(sense, 0) < step) {}
        }
        __threadfence();
    }
}
