// A value is loaded before it is known whether it is needed. On one path it is used although it was never written.
// launch: grid 1 block 32
// args: in u32 32; returned u32 32

extern "C" __global__ void bug_undefined_path(const unsigned* x, unsigned* y) {
    __shared__ unsigned s[32];
    unsigned t = threadIdx.x, sum = 0;
    if (t < 16) s[t] = x[t];
    unsigned value = *(volatile unsigned*)&s[t]; // expect: uninitialised
    if (x[t] < 18) for (unsigned i = 0; i < 3; ++i) { sum += value ^ i; __syncwarp(__activemask()); } // expect: uninitialised
    y[t] = sum; // expect: uninitialised
}

extern "C" __global__ void fixed_undefined_path(const unsigned* x, unsigned* y) {
    __shared__ unsigned s[32];
    unsigned t = threadIdx.x, sum = 0;
    if (t < 16) s[t] = x[t];
    unsigned value = *(volatile unsigned*)&s[t];
    if (x[t] < 16) for (unsigned i = 0; i < 3; ++i) { sum += value ^ i; __syncwarp(__activemask()); }
    y[t] = sum;
}
