// Two warps meet at a counter in shared memory, read what the other one wrote, and write again without meeting before.
// launch: grid 1 block 64
// args: out u32 2

extern "C" __global__ void bug_shared_spin_barrier_one_short(unsigned* y) {
    __shared__ unsigned a[2], arrived;
    if (threadIdx.x == 0) arrived = 0;
    __syncthreads();
    if (threadIdx.x % 32 != 0) return;
    unsigned w = threadIdx.x / 32;
    for (unsigned step = 1; step <= 2; step++) {
        a[w] = step; // expect: race
        __threadfence_block();
        atomicAdd(&arrived, 1);
        while (atomicAdd(&arrived, 0) < 2 * step) {}
        __threadfence_block();
        y[w] = a[1 - w]; // expect: race
    }
}

extern "C" __global__ void fixed_shared_spin_barrier_one_short(unsigned* y) {
    __shared__ unsigned a[2], arrived;
    if (threadIdx.x == 0) arrived = 0;
    __syncthreads();
    if (threadIdx.x % 32 != 0) return;
    unsigned w = threadIdx.x / 32;
    for (unsigned step = 1; step <= 2; step++) {
        a[w] = step;
        __threadfence_block();
        atomicAdd(&arrived, 1);
        while (atomicAdd(&arrived, 0) < 4 * step - 2) {}
        __threadfence_block();
        y[w] = a[1 - w];
        __threadfence_block();
        atomicAdd(&arrived, 1);
        while (atomicAdd(&arrived, 0) < 4 * step) {}
        __threadfence_block();
    }
}
