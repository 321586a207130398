// Of two values one was never written: the kernel picks it.
// launch: grid 1 block 32
// args: in u32 32; returned u32 32

extern "C" __global__ void bug_undefined_select(const unsigned* x, unsigned* y) {
    __shared__ unsigned s[64];
    unsigned t = threadIdx.x, picked;
    ((volatile unsigned*)s)[t] = x[t];
    unsigned first = ((volatile unsigned*)s)[t], second = ((volatile unsigned*)s)[t + 32]; // expect: uninitialised
    asm volatile("{ .reg .pred p; setp.ne.u32 p, %3, 7; selp.u32 %0, %1, %2, p; }"
                 : "=r"(picked) : "r"(first), "r"(second), "r"(x[t]));
    y[t] = picked + 1; // expect: uninitialised
}

extern "C" __global__ void fixed_undefined_select(const unsigned* x, unsigned* y) {
    __shared__ unsigned s[64];
    unsigned t = threadIdx.x, picked;
    ((volatile unsigned*)s)[t] = x[t];
    unsigned first = ((volatile unsigned*)s)[t], second = ((volatile unsigned*)s)[t + 32];
    asm volatile("{ .reg .pred p; setp.ne.u32 p, %3, 99; selp.u32 %0, %1, %2, p; }"
                 : "=r"(picked) : "r"(first), "r"(second), "r"(x[t]));
    y[t] = picked + 1;
}
