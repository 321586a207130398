// The product of two indices overflows 32 bits.
// launch: grid 1 block 32
// args: inout u32 32; value i32 70000

extern "C" __global__ void bug_bounds_index_overflow(unsigned* y, int stride) {
    int row = threadIdx.x + 31000;
    int at = row * stride;
    y[at] = 1; // expect: out-of-bounds
}

extern "C" __global__ void fixed_bounds_index_overflow(unsigned* y, int stride) {
    int row = threadIdx.x + 31000;
    long long at = (long long)row * stride - (long long)31000 * stride;
    y[at / 70000] = 1;
}
