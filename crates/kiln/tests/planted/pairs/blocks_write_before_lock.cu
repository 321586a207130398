// A block writes before it takes the lock under which another block reads.
// launch: grid 2 block 1
// args: inout u32 1; inout u32 1; out u32 1

extern "C" __global__ void bug_blocks_write_before_lock(unsigned* lock, unsigned* data, unsigned* y) {
    if (blockIdx.x == 0) *data = 1; // expect: race
    while (atomicCAS(lock, 0, 1) != 0) {}
    __threadfence();
    if (blockIdx.x == 1) *y = *data; // expect: race
    __threadfence();
    atomicExch(lock, 0);
}

extern "C" __global__ void fixed_blocks_write_before_lock(unsigned* lock, unsigned* data, unsigned* y) {
    while (atomicCAS(lock, 0, 1) != 0) {}
    __threadfence();
    if (blockIdx.x == 0) *data = 1;
    if (blockIdx.x == 1) *y = *data;
    __threadfence();
    atomicExch(lock, 0);
}
