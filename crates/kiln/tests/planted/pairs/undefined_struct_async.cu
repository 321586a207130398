// An asynchronous copy takes structs with padding to shared memory; one member was never set.
// launch: grid 1 block 32
// args: out u32 64; returned u32 32

struct Item { char kind; int count; };

extern "C" __global__ void bug_undefined_struct_async(Item* a, unsigned* y) {
    __shared__ Item s[32];
    unsigned t = threadIdx.x, to = (unsigned)__cvta_generic_to_shared(&s[t]);
    ((volatile Item*)a)[t].kind = 1;
    if (t != 3) ((volatile Item*)a)[t].count = t;
    asm volatile("cp.async.ca.shared.global [%0], [%1], 8;" :: "r"(to), "l"(a + t) : "memory"); // expect: uninitialised
    asm volatile("cp.async.wait_all;" ::: "memory");
    y[t] = ((volatile Item*)s)[t].count + 1; // expect: uninitialised
}

extern "C" __global__ void fixed_undefined_struct_async(Item* a, unsigned* y) {
    __shared__ Item s[32];
    unsigned t = threadIdx.x, to = (unsigned)__cvta_generic_to_shared(&s[t]);
    ((volatile Item*)a)[t].kind = 1;
    ((volatile Item*)a)[t].count = t;
    asm volatile("cp.async.ca.shared.global [%0], [%1], 8;" :: "r"(to), "l"(a + t) : "memory");
    asm volatile("cp.async.wait_all;" ::: "memory");
    y[t] = ((volatile Item*)s)[t].count + 1;
}
