// Two floats become halves of one register, of which one was never written.
// launch: grid 1 block 32
// args: in u32 32; returned u32 32

__device__ unsigned pack(float high, float low) {
    unsigned result;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(result) : "f"(high), "f"(low));
    return result;
}

extern "C" __global__ void bug_undefined_packed_pair(const unsigned* x, unsigned* y) {
    __shared__ float s[64];
    unsigned t = threadIdx.x;
    ((volatile float*)s)[2 * t] = x[t];
    unsigned both = pack(((volatile float*)s)[2 * t + 1], ((volatile float*)s)[2 * t]); // expect: uninitialised
    y[t] = __vmaxu2(both, 0x3c003c00) >> 16; // expect: uninitialised
}

extern "C" __global__ void fixed_undefined_packed_pair(const unsigned* x, unsigned* y) {
    __shared__ float s[64];
    unsigned t = threadIdx.x;
    ((volatile float*)s)[2 * t] = x[t];
    unsigned both = pack(((volatile float*)s)[2 * t + 1], ((volatile float*)s)[2 * t]);
    y[t] = __vmaxu2(both, 0x3c003c00) & 0xffff;
}
