// A local array is filled up to a bound, and the loop that sums it goes one element further. The compiler loads and computes first and selects then.
// launch: grid 1 block 32
// args: in u32 32; returned u32 32

extern "C" __global__ void bug_undefined_loop_tail(const unsigned* x, unsigned* y) {
    unsigned part[6], t = threadIdx.x, count = x[t] % 5 + 1, sum = 0;
    for (unsigned i = 0; i < count; ++i) part[i] = i * i;
    #pragma unroll
    for (unsigned i = 0; i < 6; ++i) {
        if (i <= count) sum = sum * 3 + part[i]; // expect: uninitialised
    }
    y[t] = sum; // expect: uninitialised
}

extern "C" __global__ void fixed_undefined_loop_tail(const unsigned* x, unsigned* y) {
    unsigned part[6], t = threadIdx.x, count = x[t] % 5 + 1, sum = 0;
    for (unsigned i = 0; i < count; ++i) part[i] = i * i;
    #pragma unroll
    for (unsigned i = 0; i < 6; ++i) {
        if (i < count) sum = sum * 3 + part[i];
    }
    y[t] = sum;
}
