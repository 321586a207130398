// Memory of `malloc` is freed twice.
// launch: grid 1 block 1
// args: out u32 1

extern "C" __global__ void bug_heap_double_free(unsigned* y) {
    unsigned* p = (unsigned*)malloc(16);
    *(volatile unsigned*)p = 3;
    y[0] = *(volatile unsigned*)p;
    free(p);
    free(p); // expect: bad-free
}

extern "C" __global__ void fixed_heap_double_free(unsigned* y) {
    unsigned* p = (unsigned*)malloc(16);
    *(volatile unsigned*)p = 3;
    y[0] = *(volatile unsigned*)p;
    free(p);
}
