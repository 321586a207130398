// A byte that was never written is stored as a word.
// launch: grid 1 block 32
// args: in u32 32; returned u32 32

extern "C" __global__ void bug_undefined_widened(const unsigned* x, unsigned* y) {
    __shared__ unsigned char s[32];
    unsigned t = threadIdx.x;
    if (t < x[16]) s[t] = x[t];
    __syncthreads();
    unsigned value = ((volatile unsigned char*)s)[t]; // expect: uninitialised
    y[t] = value | 256; // expect: uninitialised
}

extern "C" __global__ void fixed_undefined_widened(const unsigned* x, unsigned* y) {
    __shared__ unsigned char s[32];
    unsigned t = threadIdx.x;
    if (t <= x[31]) s[t] = x[t];
    __syncthreads();
    unsigned value = ((volatile unsigned char*)s)[t];
    y[t] = value | 256;
}
