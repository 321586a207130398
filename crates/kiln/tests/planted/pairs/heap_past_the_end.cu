// An access past a block of `malloc`.
// launch: grid 1 block 1
// args: out u32 1

extern "C" __global__ void bug_heap_past_the_end(unsigned* y) {
    volatile unsigned* p = (unsigned*)malloc(16);
    p[4] = 3; // expect: out-of-bounds
    y[0] = 1;
    free((void*)p);
}

extern "C" __global__ void fixed_heap_past_the_end(unsigned* y) {
    volatile unsigned* p = (unsigned*)malloc(16);
    p[3] = 3;
    y[0] = 1;
    free((void*)p);
}
