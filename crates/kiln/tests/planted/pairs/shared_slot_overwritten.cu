// The same between two warps in shared memory.
// launch: grid 1 block 64
// args: out u32 1

extern "C" __global__ void bug_shared_slot_overwritten(unsigned* y) {
    __shared__ unsigned slot, flag;
    if (threadIdx.x == 0) slot = flag = 0;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (unsigned i = 1; i <= 2; i++) {
            slot = i; // expect: race
            __threadfence_block();
            atomicExch(&flag, i);
        }
    } else if (threadIdx.x == 32) {
        while (atomicAdd(&flag, 0) < 1) {}
        __threadfence_block();
        *y = slot; // expect: race
    }
}

extern "C" __global__ void fixed_shared_slot_overwritten(unsigned* y) {
    __shared__ unsigned slot, flag;
    if (threadIdx.x == 0) slot = flag = 0;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (unsigned i = 1; i <= 2; i++) {
            slot = i;
            __threadfence_block();
            atomicExch(&flag, i);
        }
    } else if (threadIdx.x == 32) {
        while (atomicAdd(&flag, 0) < 2) {}
        __threadfence_block();
        *y = slot;
    }
}
