// Another thread writes the source of an asynchronous copy behind a barrier, but before the copying thread has waited.
// launch: grid 1 block 64
// args: inout u32 64; out u32 64

extern "C" __global__ void bug_copy_source_written_by_other(unsigned* x, unsigned* y) {
    __shared__ unsigned s[64];
    unsigned t = threadIdx.x, to = (unsigned)__cvta_generic_to_shared(&s[t]);
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" :: "r"(to), "l"(x + t) : "memory"); // expect: pending-copy
    __syncthreads();
    x[63 - t] = t; // expect: pending-copy
    __syncthreads();
    asm volatile("cp.async.wait_all;" ::: "memory");
    y[t] = s[t];
}

extern "C" __global__ void fixed_copy_source_written_by_other(unsigned* x, unsigned* y) {
    __shared__ unsigned s[64];
    unsigned t = threadIdx.x, to = (unsigned)__cvta_generic_to_shared(&s[t]);
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" :: "r"(to), "l"(x + t) : "memory");
    asm volatile("cp.async.wait_all;" ::: "memory");
    __syncthreads();
    x[63 - t] = t;
    __syncthreads();
    y[t] = s[t];
}
