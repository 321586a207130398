// All lanes read the carry that the last lane writes. In the twin the last lane alone uses it, and the compiler loads it in all lanes and selects.
// launch: grid 1 block 32
// args: in u32 32; out u32 32

extern "C" __global__ void bug_shared_carry_of_last_lane(const unsigned* x, unsigned* y) {
    __shared__ unsigned carry;
    unsigned t = threadIdx.x;
    if (t == 31) carry = 0;
    __syncwarp();
    unsigned v = x[t];
    for (unsigned i = 0; i < 4; ++i) {
        unsigned c = carry;     // expect: race
        v += c;
        if (t == 31) carry = v; // expect: race
        __syncwarp();
    }
    y[t] = v;
}

extern "C" __global__ void fixed_shared_carry_of_last_lane(const unsigned* x, unsigned* y) {
    __shared__ unsigned carry;
    unsigned t = threadIdx.x;
    if (t == 31) carry = 0;
    __syncwarp();
    unsigned v = x[t];
    for (unsigned i = 0; i < 4; ++i) {
        unsigned c = t == 31 ? carry : 0;
        v += c;
        if (t == 31) carry = v;
        __syncwarp();
    }
    y[t] = v;
}
