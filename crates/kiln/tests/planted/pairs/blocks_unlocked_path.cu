// One block writes the data without taking the lock.
// launch: grid 4 block 1
// args: inout u32 1; inout u32 1

extern "C" __global__ void bug_blocks_unlocked_path(unsigned* lock, unsigned* sum) {
    bool takes = blockIdx.x != 2;
    if (takes) while (atomicCAS(lock, 0, 1) != 0) {}
    __threadfence();
    sum[0] += blockIdx.x; // expect: race
    __threadfence();
    if (takes) atomicExch(lock, 0);
}

extern "C" __global__ void fixed_blocks_unlocked_path(unsigned* lock, unsigned* sum) {
    bool takes = true;
    if (takes) while (atomicCAS(lock, 0, 1) != 0) {}
    __threadfence();
    sum[0] += blockIdx.x;
    __threadfence();
    if (takes) atomicExch(lock, 0);
}
