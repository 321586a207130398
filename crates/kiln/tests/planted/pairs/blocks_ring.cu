// A ring of two slots between two blocks: the producer does not wait until a slot was read before it fills it again.
// launch: grid 2 block 64
// args: inout u32 128; inout u32 1; inout u32 1; out u32 512

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

extern "C" __global__ void bug_blocks_ring(unsigned* slots, unsigned* filled, unsigned* emptied, unsigned* y) {
    unsigned t = threadIdx.x;
    for (unsigned i = 0; i < 8; i++) {
        if (blockIdx.x == 0) {
            slots[i % 2 * 64 + t] = i; // expect: race
            publish(filled, i + 1);
        } else {
            wait_for(filled, i + 1);
            y[i * 64 + t] = slots[i % 2 * 64 + t]; // expect: race
            publish(emptied, i + 1);
        }
    }
}

extern "C" __global__ void fixed_blocks_ring(unsigned* slots, unsigned* filled, unsigned* emptied, unsigned* y) {
    unsigned t = threadIdx.x;
    for (unsigned i = 0; i < 8; i++) {
        if (blockIdx.x == 0) {
            if (i >= 2) wait_for(emptied, i - 1);
            slots[i % 2 * 64 + t] = i;
            publish(filled, i + 1);
        } else {
            wait_for(filled, i + 1);
            y[i * 64 + t] = slots[i % 2 * 64 + t];
            publish(emptied, i + 1);
        }
    }
}
