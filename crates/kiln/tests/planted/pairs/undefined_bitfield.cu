// Fields of bits are set one by one in a word that was never written; one field is forgotten.
// launch: grid 1 block 32
// args: in u32 32; returned u32 32

struct Bits { unsigned low : 3, middle : 10, high : 19; };

extern "C" __global__ void bug_undefined_bitfield(const unsigned* x, unsigned* y) {
    __shared__ Bits s[32];
    unsigned t = threadIdx.x;
    s[t].low = x[t]; // expect: uninitialised
    __syncwarp();
    s[t].high = 7; // expect: uninitialised
    __syncthreads();
    y[t] = s[31 - t].low + s[31 - t].middle + s[31 - t].high; // expect: uninitialised
}

extern "C" __global__ void fixed_undefined_bitfield(const unsigned* x, unsigned* y) {
    __shared__ Bits s[32];
    unsigned t = threadIdx.x;
    s[t].low = x[t];
    __syncwarp();
    s[t].high = 7;
    __syncthreads();
    y[t] = s[31 - t].low + s[31 - t].high;
}
