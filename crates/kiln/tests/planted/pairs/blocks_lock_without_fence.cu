// A lock across blocks without fences around the data it protects.
// launch: grid 4 block 1
// args: inout u32 1; inout u32 1

extern "C" __global__ void bug_blocks_lock_without_fence(unsigned* lock, unsigned* sum) {
    while (atomicCAS(lock, 0, 1) != 0) {}
    sum[0] += blockIdx.x; // expect: race
    atomicExch(lock, 0);
}

extern "C" __global__ void fixed_blocks_lock_without_fence(unsigned* lock, unsigned* sum) {
    while (atomicCAS(lock, 0, 1) != 0) {}
    __threadfence();
    sum[0] += blockIdx.x;
    __threadfence();
    atomicExch(lock, 0);
}
