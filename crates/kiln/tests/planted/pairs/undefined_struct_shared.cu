// Structs in shared memory are copied out as vectors, padding and all; one member was never set and is used later.
// launch: grid 1 block 32
// args: in u32 32; out u32 128; returned u32 32

struct alignas(16) Item { char kind; int count; short flags; };

extern "C" __global__ void bug_undefined_struct_shared(const unsigned* x, Item* z, unsigned* y) {
    __shared__ Item s[32];
    unsigned t = threadIdx.x;
    s[t].kind = 1; s[t].flags = 3;
    if (t != 5) s[t].count = x[t];
    __syncthreads();
    z[t] = s[31 - t]; // expect: uninitialised
    y[t] = *(volatile int*)&z[t].count * 2; // expect: uninitialised
}

extern "C" __global__ void fixed_undefined_struct_shared(const unsigned* x, Item* z, unsigned* y) {
    __shared__ Item s[32];
    unsigned t = threadIdx.x;
    s[t].kind = 1; s[t].flags = 3;
    s[t].count = x[t];
    __syncthreads();
    z[t] = s[31 - t];
    y[t] = *(volatile int*)&z[t].count * 2;
}
