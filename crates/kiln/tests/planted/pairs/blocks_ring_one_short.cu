// A ring of three slots between two blocks: the producer waits, but for one slot less than it needs.
// launch: grid 2 block 64
// args: inout u32 192; inout u32 1; inout u32 1; out u32 768

__device__ void publish(unsigned* flag, unsigned value) {
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();
        atomicExch(flag, value);
    }
    __syncthreads();
}

__device__ void wait_for(unsigned* flag, unsigned value) {
    if (threadIdx.x == 0) {
        while (atomicAdd(flag, 0) < value) {}
        __threadfence();
    }
    __syncthreads();
}

extern "C" __global__ void bug_blocks_ring_one_short(unsigned* slots, unsigned* filled, unsigned* emptied, unsigned* y) {
    unsigned t = threadIdx.x;
    for (unsigned i = 0; i < 12; i++) {
        if (blockIdx.x == 0) {
            if (i >= 4) wait_for(emptied, i - 3);
            slots[i % 3 * 64 + t] = i; // expect: race
            publish(filled, i + 1);
        } else {
            wait_for(filled, i + 1);
            y[i * 64 + t] = slots[i % 3 * 64 + t]; // expect: race
            publish(emptied, i + 1);
        }
    }
}

extern "C" __global__ void fixed_blocks_ring_one_short(unsigned* slots, unsigned* filled, unsigned* emptied, unsigned* y) {
    unsigned t = threadIdx.x;
    for (unsigned i = 0; i < 12; i++) {
        if (blockIdx.x == 0) {
            if (i >= 3) wait_for(emptied, i - 2);
            slots[i % 3 * 64 + t] = i;
            publish(filled, i + 1);
        } else {
            wait_for(filled, i + 1);
            y[i * 64 + t] = slots[i % 3 * 64 + t];
            publish(emptied, i + 1);
        }
    }
}
