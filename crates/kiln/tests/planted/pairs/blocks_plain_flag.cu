// The flag is written with a plain store.
// launch: grid 2 block 32
// args: inout u32 32; inout u32 1; out u32 32

extern "C" __global__ void bug_blocks_plain_flag(unsigned* data, unsigned* flag, unsigned* y) {
    unsigned t = threadIdx.x;
    if (blockIdx.x == 0) {
        data[t] = t + 1; // expect: race
        __threadfence();
        __syncthreads();
        if (t == 0) *flag = 1; // expect: race
    } else {
        if (t == 0) while (atomicAdd(flag, 0) == 0) {} // expect: race
        __syncthreads();
        __threadfence();
        y[t] = atomicAdd(&data[t], 0); // expect: race
    }
}

extern "C" __global__ void fixed_blocks_plain_flag(unsigned* data, unsigned* flag, unsigned* y) {
    unsigned t = threadIdx.x;
    if (blockIdx.x == 0) {
        data[t] = t + 1;
        __threadfence();
        __syncthreads();
        if (t == 0) atomicExch(flag, 1);
    } else {
        if (t == 0) while (atomicAdd(flag, 0) == 0) {}
        __syncthreads();
        __threadfence();
        y[t] = atomicAdd(&data[t], 0);
    }
}
