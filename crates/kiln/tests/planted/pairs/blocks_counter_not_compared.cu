// A block counts itself, and reads without looking whether the block before it has counted.
// launch: grid 2 block 1
// args: inout u32 1; inout u32 1; out u32 1

extern "C" __global__ void bug_blocks_counter_not_compared(unsigned* counter, unsigned* data, unsigned* y) {
    if (blockIdx.x == 0) {
        *data = 1; // expect: race
        __threadfence();
        atomicAdd(counter, 1);
    } else {
        atomicAdd(counter, 1);
        __threadfence();
        *y = *data; // expect: race
    }
}

extern "C" __global__ void fixed_blocks_counter_not_compared(unsigned* counter, unsigned* data, unsigned* y) {
    if (blockIdx.x == 0) {
        *data = 1;
        __threadfence();
        atomicAdd(counter, 1);
    } else {
        unsigned before = atomicAdd(counter, 1);
        __threadfence();
        *y = before == 1 ? *data : 0;
    }
}
