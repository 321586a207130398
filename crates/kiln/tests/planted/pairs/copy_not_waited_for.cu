// Data of an asynchronous copy is read before the thread has waited for it.
// launch: grid 1 block 32
// args: in u32 32; out u32 32

extern "C" __global__ void bug_copy_not_waited_for(const unsigned* x, unsigned* y) {
    __shared__ unsigned s[32];
    unsigned t = threadIdx.x, to = (unsigned)__cvta_generic_to_shared(&s[t]);
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" :: "r"(to), "l"(x + t) : "memory"); // expect: pending-copy
    asm volatile("cp.async.commit_group;" ::: "memory");
    y[t] = *(volatile unsigned*)&s[t]; // expect: pending-copy
    asm volatile("cp.async.wait_all;" ::: "memory");
}

extern "C" __global__ void fixed_copy_not_waited_for(const unsigned* x, unsigned* y) {
    __shared__ unsigned s[32];
    unsigned t = threadIdx.x, to = (unsigned)__cvta_generic_to_shared(&s[t]);
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" :: "r"(to), "l"(x + t) : "memory");
    asm volatile("cp.async.commit_group;" ::: "memory");
    asm volatile("cp.async.wait_group 0;" ::: "memory");
    y[t] = *(volatile unsigned*)&s[t];
    asm volatile("cp.async.wait_all;" ::: "memory");
}
