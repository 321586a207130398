// A block hands out a pointer to its shared memory, and another block reads through it: it would read its own memory.
// launch: grid 2 block 32
// args: in u32 64; inout u32 64; inout u32 4

extern "C" __global__ void bug_bounds_shared_of_other_block(const unsigned* x, unsigned* y, unsigned* flag) {
    __shared__ unsigned s[32];
    unsigned t = threadIdx.x;
    s[t] = x[blockIdx.x * 32 + t];
    __syncthreads();
    if (t != 0) return;
    if (blockIdx.x == 0) {
        *(unsigned* volatile*)(flag + 2) = s;
        __threadfence();
        atomicExch(flag, 1);
    } else {
        while (atomicAdd(flag, 0) == 0) {}
        __threadfence();
        unsigned* other = *(unsigned* volatile*)(flag + 2);
        y[32] = other[1]; // expect: out-of-bounds
    }
}

extern "C" __global__ void fixed_bounds_shared_of_other_block(const unsigned* x, unsigned* y, unsigned* flag) {
    __shared__ unsigned s[32];
    unsigned t = threadIdx.x;
    s[t] = x[blockIdx.x * 32 + t];
    __syncthreads();
    if (t != 0) return;
    if (blockIdx.x == 0) {
        y[1] = s[1];
        *(unsigned* volatile*)(flag + 2) = y;
        __threadfence();
        atomicExch(flag, 1);
    } else {
        while (atomicAdd(flag, 0) == 0) {}
        __threadfence();
        unsigned* other = *(unsigned* volatile*)(flag + 2);
        y[32] = other[1];
    }
}
