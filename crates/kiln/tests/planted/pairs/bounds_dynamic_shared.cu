// The launch gives less dynamic shared memory than the kernel uses.
// launch: grid 1 block 64 shared 256
// launch bug: grid 1 block 64 shared 128
// args: in u32 64; out u32 64

extern __shared__ unsigned dynamic[];

extern "C" __global__ void bug_bounds_dynamic_shared(const unsigned* x, unsigned* y) {
    unsigned t = threadIdx.x;
    dynamic[t] = x[t]; // expect: out-of-bounds
    __syncthreads();
    y[t] = dynamic[63 - t];
}

extern "C" __global__ void fixed_bounds_dynamic_shared(const unsigned* x, unsigned* y) {
    unsigned t = threadIdx.x;
    dynamic[t] = x[t];
    __syncthreads();
    y[t] = dynamic[63 - t];
}
