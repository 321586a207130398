// An index is read from memory that was never written, and used as an address.
// launch: grid 1 block 32
// args: in u32 32; returned u32 32

extern "C" __global__ void bug_undefined_address(const unsigned* x, unsigned* y) {
    __shared__ const unsigned* s[32];
    unsigned t = threadIdx.x;
    if (t != 4) s[t] = x;
    const unsigned* from = ((const unsigned* volatile*)s)[t]; // expect: uninitialised
    y[t] = __isShared(from) ? 1 : 2; // expect: uninitialised
}

extern "C" __global__ void fixed_undefined_address(const unsigned* x, unsigned* y) {
    __shared__ const unsigned* s[32];
    unsigned t = threadIdx.x;
    s[t] = x;
    const unsigned* from = ((const unsigned* volatile*)s)[t];
    y[t] = __isShared(from) ? 1 : from[t];
}
