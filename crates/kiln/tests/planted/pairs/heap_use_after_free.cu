// Memory of `malloc` is read after `free`.
// launch: grid 1 block 1
// args: out u32 1

extern "C" __global__ void bug_heap_use_after_free(unsigned* y) {
    volatile unsigned* p = (unsigned*)malloc(16);
    p[0] = 3;
    free((void*)p);
    y[0] = p[0]; // expect: use-after-free
}

extern "C" __global__ void fixed_heap_use_after_free(unsigned* y) {
    volatile unsigned* p = (unsigned*)malloc(16);
    p[0] = 3;
    y[0] = p[0];
    free((void*)p);
}
