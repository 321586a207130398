// An assertion that fails for one thread.
// launch: grid 1 block 32
// args: in u32 32; out u32 32

#undef assert
#define assert(e) ((e) ? (void)0 : __assertfail(#e, "assertion.cu", __LINE__, __func__, 1))
extern "C" __device__ void __assertfail(const char*, const char*, unsigned, const char*, size_t);

extern "C" __global__ void bug_assertion(const unsigned* x, unsigned* y) {
    assert(x[threadIdx.x] < 31); // expect: assertion
    y[threadIdx.x] = x[threadIdx.x];
}

extern "C" __global__ void fixed_assertion(const unsigned* x, unsigned* y) {
    assert(x[threadIdx.x] < 32);
    y[threadIdx.x] = x[threadIdx.x];
}
