// One thread writes a word that all others read at once.
// launch: grid 1 block 96
// args: in u32 1; out u32 96

extern "C" __global__ void bug_shared_broadcast(const unsigned* x, unsigned* y) {
    __shared__ unsigned first;
    if (threadIdx.x == 40) first = x[0]; // expect: race
    y[threadIdx.x] = first; // expect: race
}

extern "C" __global__ void fixed_shared_broadcast(const unsigned* x, unsigned* y) {
    __shared__ unsigned first;
    if (threadIdx.x == 40) first = x[0];
    __syncthreads();
    y[threadIdx.x] = first;
}
