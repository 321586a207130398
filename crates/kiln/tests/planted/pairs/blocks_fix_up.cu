// Blocks that computed a part of one tile leave partial sums for the first of them, which waits for one of them less.
// launch: grid 4 block 32
// args: inout u32 128; inout u32 1; out u32 32

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

extern "C" __global__ void bug_blocks_fix_up(unsigned* partial, unsigned* arrived, unsigned* y) {
    unsigned t = threadIdx.x, b = blockIdx.x, sum = t + b;
    if (b > 0) {
        partial[b * 32 + t] = sum; // expect: race
        __syncthreads();
        if (t == 0) {
            __threadfence();
            atomicAdd(arrived, 1);
        }
    } else {
        wait_for(arrived, gridDim.x - 2);
        for (unsigned other = 1; other < gridDim.x; other++) sum += partial[other * 32 + t]; // expect: race
        y[t] = sum;
    }
}

extern "C" __global__ void fixed_blocks_fix_up(unsigned* partial, unsigned* arrived, unsigned* y) {
    unsigned t = threadIdx.x, b = blockIdx.x, sum = t + b;
    if (b > 0) {
        partial[b * 32 + t] = sum;
        __syncthreads();
        if (t == 0) {
            __threadfence();
            atomicAdd(arrived, 1);
        }
    } else {
        wait_for(arrived, gridDim.x - 1);
        for (unsigned other = 1; other < gridDim.x; other++) sum += partial[other * 32 + t];
        y[t] = sum;
    }
}
