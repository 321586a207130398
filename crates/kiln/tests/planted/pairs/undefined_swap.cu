// A compare-and-swap puts a value in that was never written.
// launch: grid 1 block 32
// args: in u32 32; inout u32 32; returned u32 32

extern "C" __global__ void bug_undefined_swap(const unsigned* x, unsigned* z, unsigned* y) {
    __shared__ unsigned s[32];
    unsigned t = threadIdx.x;
    if (t < x[16]) s[t] = x[t];
    __syncthreads();
    unsigned value = ((volatile unsigned*)s)[t]; // expect: uninitialised
    atomicCAS(&z[t], 0u, value); // expect: uninitialised
    y[t] = atomicExch(&z[t], 1u); // expect: uninitialised
}

extern "C" __global__ void fixed_undefined_swap(const unsigned* x, unsigned* z, unsigned* y) {
    __shared__ unsigned s[32];
    unsigned t = threadIdx.x;
    if (t <= x[31]) s[t] = x[t];
    __syncthreads();
    unsigned value = ((volatile unsigned*)s)[t];
    atomicCAS(&z[t], 0u, value);
    y[t] = atomicExch(&z[t], 1u);
}
