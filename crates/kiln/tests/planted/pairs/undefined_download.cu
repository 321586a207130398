// Results are copied out of an array of which a part was never written. The host finds the part that has no value.
// launch: grid 1 block 64
// args: in u32 64; returned u32 64

extern "C" __global__ void bug_undefined_download(const unsigned* x, unsigned* y) {
    __shared__ unsigned s[64];
    unsigned t = threadIdx.x;
    if (t < 48) s[t] = x[t];
    __syncthreads();
    unsigned value = s[63 - t]; // expect: uninitialised
    y[t] = value; // expect: uninitialised
}

extern "C" __global__ void fixed_undefined_download(const unsigned* x, unsigned* y) {
    __shared__ unsigned s[64];
    unsigned t = threadIdx.x;
    if (true) s[t] = x[t];
    __syncthreads();
    unsigned value = s[63 - t];
    y[t] = value;
}
