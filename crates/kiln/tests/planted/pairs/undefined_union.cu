// A union is copied as a whole while only its small member was set. The large one is read afterwards.
// launch: grid 1 block 32
// args: in u32 32; returned u32 32

union Value { unsigned char small; unsigned large; };

extern "C" __global__ void bug_undefined_union(const unsigned* x, unsigned* y) {
    __shared__ Value s[32], copy[32];
    unsigned t = threadIdx.x;
    ((volatile Value*)s)[t].small = x[t];
    copy[t].large = ((volatile Value*)s)[t].large; // expect: uninitialised
    y[t] = ((volatile Value*)copy)[t].large + 1; // expect: uninitialised
}

extern "C" __global__ void fixed_undefined_union(const unsigned* x, unsigned* y) {
    __shared__ Value s[32], copy[32];
    unsigned t = threadIdx.x;
    ((volatile Value*)s)[t].small = x[t];
    copy[t].large = ((volatile Value*)s)[t].large;
    y[t] = ((volatile Value*)copy)[t].small + 1;
}
