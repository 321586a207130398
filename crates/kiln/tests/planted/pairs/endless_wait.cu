// A thread waits for a flag that no thread sets.
// launch: grid 2 block 32
// args: inout u32 2; out u32 2

extern "C" __global__ void bug_endless_wait(unsigned* flag, unsigned* y) {
    if (threadIdx.x == 0) {
        if (blockIdx.x == 1) atomicExch(&flag[1], 1);
        else while (atomicAdd(&flag[0], 0) == 0) {} // expect: endless
        y[blockIdx.x] = 1;
    }
}

extern "C" __global__ void fixed_endless_wait(unsigned* flag, unsigned* y) {
    if (threadIdx.x == 0) {
        if (blockIdx.x == 1) atomicExch(&flag[0], 1);
        else while (atomicAdd(&flag[0], 0) == 0) {}
        y[blockIdx.x] = 1;
    }
}
