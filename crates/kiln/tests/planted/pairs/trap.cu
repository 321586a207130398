// The kernel executes a trap for a value it does not expect.
// launch: grid 1 block 32
// args: in u32 32; out u32 32

extern "C" __global__ void bug_trap(const unsigned* x, unsigned* y) {
    if (x[threadIdx.x] > 30) asm volatile("trap;"); // expect: trap
    y[threadIdx.x] = x[threadIdx.x];
}

extern "C" __global__ void fixed_trap(const unsigned* x, unsigned* y) {
    if (x[threadIdx.x] > 31) asm volatile("trap;");
    y[threadIdx.x] = x[threadIdx.x];
}
