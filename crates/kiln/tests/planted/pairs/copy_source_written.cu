// The source of an asynchronous copy is written before the thread has waited for the copy.
// launch: grid 1 block 32
// args: inout u32 32; out u32 32

extern "C" __global__ void bug_copy_source_written(unsigned* x, unsigned* y) {
    __shared__ unsigned s[32];
    unsigned t = threadIdx.x, to = (unsigned)__cvta_generic_to_shared(&s[t]);
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" :: "r"(to), "l"(x + t) : "memory"); // expect: pending-copy
    x[t] = t; // expect: pending-copy
    asm volatile("cp.async.wait_all;" ::: "memory");
    y[t] = s[t];
}

extern "C" __global__ void fixed_copy_source_written(unsigned* x, unsigned* y) {
    __shared__ unsigned s[32];
    unsigned t = threadIdx.x, to = (unsigned)__cvta_generic_to_shared(&s[t]);
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" :: "r"(to), "l"(x + t) : "memory");
    asm volatile("cp.async.wait_all;" ::: "memory");
    x[t] = t;
    y[t] = s[t];
}
