// A flag decides a branch before any thread has set it.
// launch: grid 1 block 32
// args: in u32 32; returned u32 32

extern "C" __global__ void bug_undefined_condition(const unsigned* x, unsigned* y) {
    __shared__ unsigned char ready;
    unsigned t = threadIdx.x, sum = 0;
    if (x[t] == 99) ready = 1;
    __syncthreads();
    if (*(volatile unsigned char*)&ready) for (unsigned i = 0; i < t; ++i) sum += x[i]; // expect: uninitialised
    y[t] = sum;
}

extern "C" __global__ void fixed_undefined_condition(const unsigned* x, unsigned* y) {
    __shared__ unsigned char ready;
    unsigned t = threadIdx.x, sum = 0;
    if (t == 0) ready = x[t] == 0;
    __syncthreads();
    if (*(volatile unsigned char*)&ready) for (unsigned i = 0; i < t; ++i) sum += x[i];
    y[t] = sum;
}
