// The kernel follows an address to a buffer that was freed.
// launch: grid 1 block 32
// args: out u32 32; freed u32 32

extern "C" __global__ void bug_memory_freed(unsigned* y, const unsigned long long* other) {
    unsigned t = threadIdx.x;
    y[t] = ((unsigned*)other[0])[t]; // expect: use-after-free
}

extern "C" __global__ void fixed_memory_freed(unsigned* y, const unsigned long long* other) {
    unsigned t = threadIdx.x;
    y[t] = other[0] != 0;
}
