// Each thread waits for its own asynchronous copy, and reads that of another without a barrier.
// launch: grid 1 block 64
// args: in u32 64; out u32 64

extern "C" __global__ void bug_copy_waited_for_by_one(const unsigned* x, unsigned* y) {
    __shared__ unsigned s[64];
    unsigned t = threadIdx.x, to = (unsigned)__cvta_generic_to_shared(&s[t]);
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" :: "r"(to), "l"(x + t) : "memory"); // expect: race
    asm volatile("cp.async.wait_all;" ::: "memory");
    y[t] = *(volatile unsigned*)&s[63 - t]; // expect: race
}

extern "C" __global__ void fixed_copy_waited_for_by_one(const unsigned* x, unsigned* y) {
    __shared__ unsigned s[64];
    unsigned t = threadIdx.x, to = (unsigned)__cvta_generic_to_shared(&s[t]);
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" :: "r"(to), "l"(x + t) : "memory");
    asm volatile("cp.async.wait_all;" ::: "memory");
    __syncthreads();
    y[t] = *(volatile unsigned*)&s[63 - t];
}
