// Of a word only the lowest byte was written. A sum has as many low bits that are defined.
// launch: grid 1 block 32
// args: in u32 32; returned u32 32

extern "C" __global__ void bug_undefined_low_bits(const unsigned* x, unsigned* y) {
    __shared__ unsigned s[32];
    unsigned t = threadIdx.x, sum, rest = 0;
    ((volatile unsigned char*)s)[4 * t] = x[t];
    unsigned word = ((volatile unsigned*)s)[t]; // expect: uninitialised
    asm volatile("mad.lo.u32 %0, %1, 5, %2;" : "=r"(sum) : "r"(word), "r"(x[t]));
    if ((sum & 0x1ff) > 40) for (unsigned i = 0; i < t; ++i) rest += x[i]; // expect: uninitialised
    y[t] = rest;
}

extern "C" __global__ void fixed_undefined_low_bits(const unsigned* x, unsigned* y) {
    __shared__ unsigned s[32];
    unsigned t = threadIdx.x, sum, rest = 0;
    ((volatile unsigned char*)s)[4 * t] = x[t];
    unsigned word = ((volatile unsigned*)s)[t];
    asm volatile("mad.lo.u32 %0, %1, 5, %2;" : "=r"(sum) : "r"(word), "r"(x[t]));
    if ((sum & 0xff) > 40) for (unsigned i = 0; i < t; ++i) rest += x[i];
    y[t] = rest;
}
