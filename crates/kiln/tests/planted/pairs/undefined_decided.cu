// Of a word only the highest byte was written. It decides which of two words is greater, and not whether they are equal.
// launch: grid 1 block 32
// args: in u32 32; returned u32 32

extern "C" __global__ void bug_undefined_decided(const unsigned* x, unsigned* y) {
    __shared__ unsigned s[32];
    unsigned t = threadIdx.x, sum = 0;
    ((volatile unsigned char*)s)[4 * t + 3] = x[t] + 7;
    unsigned word = ((volatile unsigned*)s)[t]; // expect: uninitialised
    if (word == x[9] << 24) for (unsigned i = 0; i < t; ++i) sum += x[i]; // expect: uninitialised
    y[t] = sum;
}

extern "C" __global__ void fixed_undefined_decided(const unsigned* x, unsigned* y) {
    __shared__ unsigned s[32];
    unsigned t = threadIdx.x, sum = 0;
    ((volatile unsigned char*)s)[4 * t + 3] = x[t] + 7;
    unsigned word = ((volatile unsigned*)s)[t];
    if (word >= x[9] << 24) for (unsigned i = 0; i < t; ++i) sum += x[i];
    y[t] = sum;
}
