// A vector of four words is loaded from an address that is no multiple of 16.
// launch: grid 1 block 4
// args: in u32 32; out u32 4

extern "C" __global__ void bug_misaligned_vector(const unsigned* x, unsigned* y) {
    unsigned t = threadIdx.x;
    uint4 v = *(const uint4*)(x + 4 * t + 1); // expect: misaligned
    y[t] = v.x + v.y + v.z + v.w;
}

extern "C" __global__ void fixed_misaligned_vector(const unsigned* x, unsigned* y) {
    unsigned t = threadIdx.x;
    uint4 v = *(const uint4*)(x + 4 * t + 4);
    y[t] = v.x + v.y + v.z + v.w;
}
