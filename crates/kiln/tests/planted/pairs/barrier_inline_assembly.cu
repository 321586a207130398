// Warps with different work meet at barriers at different places. CUDA C does not allow that with `__syncthreads()`; PTX does, with `bar.sync` in inline
// assembly.
// launch: grid 1 block 128
// args: in u32 256; out u32 64; value u32 4

extern "C" __global__ void bug_barrier_inline_assembly(const unsigned* x, unsigned* y, unsigned n) {
    __shared__ unsigned s[64];
    unsigned t = threadIdx.x, sum = 0;
    if (t < 64) {
        for (unsigned i = 0; i < n; ++i) {
            s[t] = x[64 * i + t];
            __syncthreads(); // expect: barrier
            __syncthreads(); // expect: barrier
        }
    } else {
        for (unsigned i = 0; i < n; ++i) {
            __syncthreads(); // expect: barrier
            sum += s[t - 64];
            __syncthreads(); // expect: barrier
        }
        y[t - 64] = sum;
    }
}

extern "C" __global__ void fixed_barrier_inline_assembly(const unsigned* x, unsigned* y, unsigned n) {
    __shared__ unsigned s[64];
    unsigned t = threadIdx.x, sum = 0;
    if (t < 64) {
        for (unsigned i = 0; i < n; ++i) {
            s[t] = x[64 * i + t];
            asm volatile("bar.sync 0;" ::: "memory");
            asm volatile("bar.sync 0;" ::: "memory");
        }
    } else {
        for (unsigned i = 0; i < n; ++i) {
            asm volatile("bar.sync 0;" ::: "memory");
            sum += s[t - 64];
            asm volatile("bar.sync 0;" ::: "memory");
        }
        y[t - 64] = sum;
    }
    __syncthreads();
    if (t < 64) y[t] += s[t];
}
