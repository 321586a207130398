// Two halves are divided at once, and one of them was never written: `__h2div` branches on each. The twin uses the other half alone.
// launch: grid 1 block 64
// args: in u32 64; returned u32 64

#include <cuda_fp16.h>

extern "C" __global__ void bug_undefined_half_divided(const unsigned* x, unsigned* y) {
    __shared__ __half s[128];
    unsigned t = threadIdx.x;
    s[t] = __float2half((float)x[t]);
    __half2 both = __h2div(__halves2half2(s[t], s[t + 64]), __float2half2_rn(3.0f)); // expect: uninitialised
    y[t] = __half_as_ushort(__high2half(both)); // expect: uninitialised
}

extern "C" __global__ void fixed_undefined_half_divided(const unsigned* x, unsigned* y) {
    __shared__ __half s[128];
    unsigned t = threadIdx.x;
    s[t] = __float2half((float)x[t]);
    __half2 both = __h2div(__halves2half2(s[t], s[t + 64]), __float2half2_rn(3.0f));
    y[t] = __half_as_ushort(__low2half(both));
}
