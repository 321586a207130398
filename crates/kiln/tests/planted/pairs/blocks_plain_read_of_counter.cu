// A counter that other blocks raise with atomics is read with a plain load.
// launch: grid 4 block 32
// args: inout u32 1; out u32 4

extern "C" __global__ void bug_blocks_plain_read_of_counter(unsigned* count, unsigned* y) {
    if (threadIdx.x == 0) {
        atomicAdd(count, 1); // expect: race
        y[blockIdx.x] = *count; // expect: race
    }
}

extern "C" __global__ void fixed_blocks_plain_read_of_counter(unsigned* count, unsigned* y) {
    if (threadIdx.x == 0) {
        atomicAdd(count, 1);
        y[blockIdx.x] = atomicAdd(count, 0);
    }
}
