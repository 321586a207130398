// The upper half of a long sum takes the carry of a lower half that was never written.
// launch: grid 1 block 32
// args: in u32 32; returned u32 32

extern "C" __global__ void bug_undefined_carry(const unsigned* x, unsigned* y) {
    __shared__ unsigned s[32];
    unsigned t = threadIdx.x, low, high;
    unsigned lower = ((volatile unsigned*)s)[t]; // expect: uninitialised
    asm volatile("add.cc.u32 %0, %2, %3;  addc.u32 %1, %3, 0;"
                 : "=r"(low), "=r"(high) : "r"(lower), "r"(x[t]));
    y[t] = high; // expect: uninitialised
}

extern "C" __global__ void fixed_undefined_carry(const unsigned* x, unsigned* y) {
    __shared__ unsigned s[32];
    unsigned t = threadIdx.x, low, high;
    unsigned lower = ((volatile unsigned*)s)[t];
    asm volatile("add.cc.u32 %0, %2, %3; add.cc.u32 %0, %3, 1; addc.u32 %1, %3, 0;"
                 : "=r"(low), "=r"(high) : "r"(lower), "r"(x[t]));
    y[t] = high;
}
