// A block has barriers 0 to 15, and the kernel uses number 16.
// launch: grid 1 block 64
// args: out u32 64; value u32 16

extern "C" __global__ void bug_barrier_number(unsigned* y, unsigned number) {
    asm volatile("bar.sync %0, 64;" :: "r"(number) : "memory"); // expect: bad-operand
    y[threadIdx.x] = number;
}

extern "C" __global__ void fixed_barrier_number(unsigned* y, unsigned number) {
    asm volatile("bar.sync %0, 64;" :: "r"(number - 1) : "memory");
    y[threadIdx.x] = number;
}
