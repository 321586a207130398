// Four bytes are added at once, and one of them was never written.
// launch: grid 1 block 32
// args: in u32 32; returned u32 32

extern "C" __global__ void bug_undefined_packed_bytes(const unsigned* x, unsigned* y) {
    __shared__ unsigned s[32];
    unsigned t = threadIdx.x;
    ((volatile unsigned char*)s)[4 * t + 2] = x[t];
    unsigned all = __vadd4(((volatile unsigned*)s)[t], 0x01020304); // expect: uninitialised
    y[t] = all >> 8 & 0xff; // expect: uninitialised
}

extern "C" __global__ void fixed_undefined_packed_bytes(const unsigned* x, unsigned* y) {
    __shared__ unsigned s[32];
    unsigned t = threadIdx.x;
    ((volatile unsigned char*)s)[4 * t + 2] = x[t];
    unsigned all = __vadd4(((volatile unsigned*)s)[t], 0x01020304);
    y[t] = all >> 16 & 0xff;
}
