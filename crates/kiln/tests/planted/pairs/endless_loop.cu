// A loop whose condition never changes.
// launch: grid 1 block 32
// args: in u32 32; out u32 32

extern "C" __global__ void bug_endless_loop(const unsigned* x, unsigned* y) {
    unsigned v = x[threadIdx.x], n = 0;
    while (v != 1) { v = v % 2 ? v + 3 : v / 2; if (++n == 0) break; asm volatile("" : "+r"(v)); n %= 16; } // expect: endless
    y[threadIdx.x] = v;
}

extern "C" __global__ void fixed_endless_loop(const unsigned* x, unsigned* y) {
    unsigned v = x[threadIdx.x] + 1, n = 0;
    while (v != 1) { v = v % 2 ? v + 3 : v / 2; if (++n == 9) break; asm volatile("" : "+r"(v)); n %= 16; }
    y[threadIdx.x] = v;
}
