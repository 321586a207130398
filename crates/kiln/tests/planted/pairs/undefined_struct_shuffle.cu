// A struct with padding goes from lane to lane by words; one lane has a member that was never set.
// launch: grid 1 block 32
// args: in u32 32; returned u32 32

struct Item { char kind; int count; };

extern "C" __global__ void bug_undefined_struct_shuffle(const unsigned* x, unsigned* y) {
    __shared__ Item s[32];
    unsigned t = threadIdx.x;
    s[t].kind = 1;
    if (t != 9) s[t].count = x[t];
    __syncthreads();
    volatile unsigned* words = (volatile unsigned*)&s[t];
    unsigned first = words[0], second = words[1]; // expect: uninitialised
    first = __shfl_xor_sync(0xffffffff, first, 1);
    second = __shfl_xor_sync(0xffffffff, second, 1);
    y[t] = (first & 255) + second; // expect: uninitialised
}

extern "C" __global__ void fixed_undefined_struct_shuffle(const unsigned* x, unsigned* y) {
    __shared__ Item s[32];
    unsigned t = threadIdx.x;
    s[t].kind = 1;
    s[t].count = x[t];
    __syncthreads();
    volatile unsigned* words = (volatile unsigned*)&s[t];
    unsigned first = words[0], second = words[1];
    first = __shfl_xor_sync(0xffffffff, first, 1);
    second = __shfl_xor_sync(0xffffffff, second, 1);
    y[t] = (first & 255) + second;
}
