// Two words are loaded as one value of 64 bits, and only the lower one was written.
// launch: grid 1 block 32
// args: in u32 32; returned u32 32

extern "C" __global__ void bug_undefined_half(const unsigned* x, unsigned* y) {
    __shared__ unsigned long long s[32];
    unsigned t = threadIdx.x;
    ((volatile unsigned*)s)[2 * t] = x[t];
    unsigned long long both = ((volatile unsigned long long*)s)[t]; // expect: uninitialised
    y[t] = (unsigned)(both >> 32) + 1; // expect: uninitialised
}

extern "C" __global__ void fixed_undefined_half(const unsigned* x, unsigned* y) {
    __shared__ unsigned long long s[32];
    unsigned t = threadIdx.x;
    ((volatile unsigned*)s)[2 * t] = x[t];
    unsigned long long both = ((volatile unsigned long long*)s)[t];
    y[t] = (unsigned)both + 1;
}
