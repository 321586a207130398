// Eight bytes of a packed record are read at once.
// launch: grid 1 block 4
// args: in u32 32; out u32 4

extern "C" __global__ void bug_misaligned_bytes(const unsigned char* x, unsigned* y) {
    unsigned t = threadIdx.x;
    y[t] = *(const unsigned long long*)(x + 12 * t); // expect: misaligned
}

extern "C" __global__ void fixed_misaligned_bytes(const unsigned char* x, unsigned* y) {
    unsigned t = threadIdx.x;
    y[t] = *(const unsigned*)(x + 12 * t);
}
