// One component of a vector that the host reads was never written.
// launch: grid 1 block 32
// args: in u32 32; returned u32 64

extern "C" __global__ void bug_undefined_component(const unsigned* x, uint2* y) {
    __shared__ unsigned s[32];
    unsigned t = threadIdx.x;
    if (t != 9) s[t] = x[t];
    __syncthreads();
    unsigned value = ((volatile unsigned*)s)[t]; // expect: uninitialised
    y[t] = make_uint2(1, value); // expect: uninitialised
}

extern "C" __global__ void fixed_undefined_component(const unsigned* x, uint2* y) {
    __shared__ unsigned s[32];
    unsigned t = threadIdx.x;
    if (t != 99) s[t] = x[t];
    __syncthreads();
    unsigned value = ((volatile unsigned*)s)[t];
    y[t] = make_uint2(1, value);
}
