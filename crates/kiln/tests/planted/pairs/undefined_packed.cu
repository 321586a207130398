// Two halves are multiplied and added in one register, and only the lower one was written.
// launch: grid 1 block 32
// args: in u32 32; returned u32 32

__device__ unsigned fma2(unsigned a) {
    unsigned result;
    asm("fma.rn.f16x2 %0, %1, %1, %1;" : "=r"(result) : "r"(a));
    return result;
}

extern "C" __global__ void bug_undefined_packed(const unsigned* x, unsigned* y) {
    __shared__ unsigned s[32];
    unsigned t = threadIdx.x;
    ((volatile unsigned short*)s)[2 * t] = x[t];
    unsigned both = fma2(((volatile unsigned*)s)[t]); // expect: uninitialised
    y[t] = both >> 16; // expect: uninitialised
}

extern "C" __global__ void fixed_undefined_packed(const unsigned* x, unsigned* y) {
    __shared__ unsigned s[32];
    unsigned t = threadIdx.x;
    ((volatile unsigned short*)s)[2 * t] = x[t];
    unsigned both = fma2(((volatile unsigned*)s)[t]);
    y[t] = both & 0xffff;
}
