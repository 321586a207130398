// A counter is cleared with a plain write while other threads add to it with atomics.
// launch: grid 1 block 128
// args: out u32 1

extern "C" __global__ void bug_shared_clear_and_count(unsigned* y) {
    __shared__ unsigned count;
    if (threadIdx.x == 0) count = 0; // expect: race
    atomicAdd(&count, 1); // expect: race
    __syncthreads();
    if (threadIdx.x == 0) y[0] = count;
}

extern "C" __global__ void fixed_shared_clear_and_count(unsigned* y) {
    __shared__ unsigned count;
    if (threadIdx.x == 0) count = 0;
    __syncthreads();
    atomicAdd(&count, 1);
    __syncthreads();
    if (threadIdx.x == 0) y[0] = count;
}
