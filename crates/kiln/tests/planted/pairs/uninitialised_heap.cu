// Memory of `malloc` in the kernel is read before it is written.
// launch: grid 1 block 1
// args: returned u32 1

extern "C" __global__ void bug_uninitialised_heap(unsigned* y) {
    volatile unsigned* p = (unsigned*)malloc(64);
    y[0] = p[3]; // expect: uninitialised
    free((void*)p);
}

extern "C" __global__ void fixed_uninitialised_heap(unsigned* y) {
    volatile unsigned* p = (unsigned*)malloc(64);
    p[3] = 5;
    y[0] = p[3];
    free((void*)p);
}
