// One warp counts votes at a barrier at which the other only waits.
// launch: grid 1 block 64
// args: out u32 64

extern "C" __global__ void bug_barrier_reduction_and_sync(unsigned* y) {
    unsigned votes = 0;
    if (threadIdx.x < 32) votes = __syncthreads_count(1); // expect: barrier
    else __syncthreads(); // expect: barrier
    y[threadIdx.x] = votes;
}

extern "C" __global__ void fixed_barrier_reduction_and_sync(unsigned* y) {
    unsigned votes = __syncthreads_count(threadIdx.x < 32);
    y[threadIdx.x] = votes;
}
