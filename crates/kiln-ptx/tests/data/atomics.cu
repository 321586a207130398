// Every atomic in several widths, scopes and orders.
extern "C" __global__ void integers(int* a, unsigned* b, unsigned long long* c, long long* d) {
    int t = threadIdx.x;
    atomicAdd(a, t);
    atomicSub(a + 1, t);
    atomicMin(a + 2, t);
    atomicMax(a + 3, t);
    atomicAnd(a + 4, t);
    atomicOr(a + 5, t);
    atomicXor(a + 6, t);
    a[7] = atomicExch(a + 8, t);
    a[9] = atomicCAS(a + 10, t, t + 1);
    b[1] = atomicInc(b, 10u);
    b[2] = atomicDec(b + 3, 10u);
    atomicAdd(c, 5ull);
    c[1] = atomicCAS(c + 2, 3ull, 4ull);
    atomicMax(d, 7ll);
}

extern "C" __global__ void floats(float* a, double* b, float* result) {
    atomicAdd(a, 1.5f);
    atomicAdd(b, 2.5);
    *result = atomicExch(a + 1, 3.0f);
}

extern "C" __global__ void scopes(int* a, int* flag) {
    atomicAdd_block(a, 1);
    atomicAdd_system(a + 1, 1);
    int v;
    asm volatile("ld.acquire.gpu.global.s32 %0, [%1];" : "=r"(v) : "l"(flag) : "memory");
    asm volatile("st.release.sys.global.s32 [%0], %1;" ::"l"(flag + 1), "r"(v) : "memory");
    asm volatile("fence.acq_rel.gpu;" ::: "memory");
    asm volatile("red.relaxed.gpu.global.add.s32 [%0], %1;" ::"l"(flag + 2), "r"(v) : "memory");
    ((volatile int*)a)[3] = v;
}

extern "C" __global__ void insert(unsigned long long* table, const unsigned* keys, int n, int capacity) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned slot = keys[i] * 2654435761u % capacity;
    unsigned long long entry = ((unsigned long long)keys[i] << 32) | i;
    while (atomicCAS(&table[slot], ~0ull, entry) != ~0ull) slot = (slot + 1) % capacity;
}
