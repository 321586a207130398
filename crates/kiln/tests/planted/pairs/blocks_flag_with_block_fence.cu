// The fence between data and flag orders only the threads of one block.
// launch: grid 2 block 32
// args: inout u32 32; inout u32 1; out u32 32

extern "C" __global__ void bug_blocks_flag_with_block_fence(unsigned* data, unsigned* flag, unsigned* y) {
    unsigned t = threadIdx.x;
    if (blockIdx.x == 0) {
        data[t] = t + 1; // expect: race
        __threadfence_block();
        __syncwarp();
        if (t == 0) atomicExch(flag, 1);
    } else {
        if (t == 0) while (atomicAdd(flag, 0) == 0) {}
        __syncwarp();
        __threadfence_block();
        y[t] = data[t]; // expect: race
    }
}

extern "C" __global__ void fixed_blocks_flag_with_block_fence(unsigned* data, unsigned* flag, unsigned* y) {
    unsigned t = threadIdx.x;
    if (blockIdx.x == 0) {
        data[t] = t + 1;
        __threadfence();
        __syncwarp();
        if (t == 0) atomicExch(flag, 1);
    } else {
        if (t == 0) while (atomicAdd(flag, 0) == 0) {}
        __syncwarp();
        __threadfence();
        y[t] = data[t];
    }
}
