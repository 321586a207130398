// Blocks hand tiles on in a line. Each fills the buffer it has just handed on, and should fill the other one.
// launch: grid 3 block 32
// args: inout u32 192; inout u32 3; inout u32 3; out u32 96

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

extern "C" __global__ void bug_blocks_double_buffer(unsigned* buffers, unsigned* ready, unsigned* done, unsigned* y) {
    unsigned t = threadIdx.x, b = blockIdx.x, sum = 0;
    for (unsigned i = 0; i < 4; i++) {
        if (b > 0) {
            wait_for(ready + b - 1, i + 1);
            sum += buffers[(b - 1) * 64 + t]; // expect: race
            publish(done + b, i + 1);
        }
        if (i >= 2) wait_for(done + (b + 1) % 3, b < 2 ? i - 1 : 0);
        buffers[b * 64 + t] = sum + t; // expect: race
        publish(ready + b, i + 1);
    }
    y[b * 32 + t] = sum;
}

extern "C" __global__ void fixed_blocks_double_buffer(unsigned* buffers, unsigned* ready, unsigned* done, unsigned* y) {
    unsigned t = threadIdx.x, b = blockIdx.x, sum = 0;
    for (unsigned i = 0; i < 4; i++) {
        if (b > 0) {
            wait_for(ready + b - 1, i + 1);
            sum += buffers[(b - 1) * 64 + i % 2 * 32 + t];
            publish(done + b, i + 1);
        }
        if (i >= 2) wait_for(done + (b + 1) % 3, b < 2 ? i - 1 : 0);
        buffers[b * 64 + i % 2 * 32 + t] = sum + t;
        publish(ready + b, i + 1);
    }
    y[b * 32 + t] = sum;
}
