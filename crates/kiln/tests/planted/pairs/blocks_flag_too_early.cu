// A flag counts the parts of a result, and the reader waits for the first part alone.
// launch: grid 2 block 32
// args: inout u32 64; inout u32 1; out u32 64

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

extern "C" __global__ void bug_blocks_flag_too_early(unsigned* data, unsigned* parts, unsigned* y) {
    unsigned t = threadIdx.x;
    if (blockIdx.x == 0) {
        data[t] = t;
        publish(parts, 1);
        data[32 + t] = t; // expect: race
        publish(parts, 2);
    } else {
        wait_for(parts, 1);
        y[t] = data[t];
        y[32 + t] = data[32 + t]; // expect: race
    }
}

extern "C" __global__ void fixed_blocks_flag_too_early(unsigned* data, unsigned* parts, unsigned* y) {
    unsigned t = threadIdx.x;
    if (blockIdx.x == 0) {
        data[t] = t;
        publish(parts, 1);
        data[32 + t] = t;
        publish(parts, 2);
    } else {
        wait_for(parts, 1);
        y[t] = data[t];
        wait_for(parts, 2);
        y[32 + t] = data[32 + t];
    }
}
