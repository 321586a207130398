// A lock is released before the last access to what it protects.
// launch: grid 4 block 1
// args: inout u32 1; inout u32 2; out u32 4

extern "C" __global__ void bug_blocks_lock_released_early(unsigned* lock, unsigned* total, unsigned* y) {
    while (atomicCAS(lock, 0, 1) != 0) {}
    __threadfence();
    total[0] += blockIdx.x;
    unsigned count = total[1]; // expect: race
    __threadfence();
    atomicExch(lock, 0);
    total[1] = count + 1; // expect: race
    y[blockIdx.x] = count;
    atomicAdd(lock, 0);
}

extern "C" __global__ void fixed_blocks_lock_released_early(unsigned* lock, unsigned* total, unsigned* y) {
    while (atomicCAS(lock, 0, 1) != 0) {}
    __threadfence();
    total[0] += blockIdx.x;
    unsigned count = total[1];
    total[1] = count + 1;
    __threadfence();
    atomicExch(lock, 0);
    y[blockIdx.x] = count;
    atomicAdd(lock, 0);
}
