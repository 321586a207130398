// A lane frees a block of the heap that the other lanes of its warp still read.
// launch: grid 1 block 32
// args: in u32 32; out u32 32

extern "C" __global__ void bug_heap_freed_while_read(const unsigned* x, unsigned* y) {
    unsigned t = threadIdx.x;
    unsigned* p = 0;
    if (t == 0) p = (unsigned*)malloc(32 * sizeof(unsigned));
    p = (unsigned*)__shfl_sync(~0u, (unsigned long long)p, 0);
    p[t] = x[t];
    __syncwarp();
    unsigned v = p[31 - t]; // expect: race
    if (t == 0) free(p); // expect: race
    y[t] = v;
}

extern "C" __global__ void fixed_heap_freed_while_read(const unsigned* x, unsigned* y) {
    unsigned t = threadIdx.x;
    unsigned* p = 0;
    if (t == 0) p = (unsigned*)malloc(32 * sizeof(unsigned));
    p = (unsigned*)__shfl_sync(~0u, (unsigned long long)p, 0);
    p[t] = x[t];
    __syncwarp();
    unsigned v = p[31 - t];
    __syncwarp();
    if (t == 0) free(p);
    y[t] = v;
}
