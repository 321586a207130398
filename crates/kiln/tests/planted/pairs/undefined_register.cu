// A register is used that no instruction has assigned. The twin computes with it and drops the result, as compilers do.
// launch: grid 1 block 32
// args: in u32 32; returned u32 32

extern "C" __global__ void bug_undefined_register(const unsigned* x, unsigned* y) {
    unsigned t = threadIdx.x, value;
    asm volatile("{ .reg .u32 a; .reg .pred p; setp.lt.u32 p, %1, 20; @p mov.u32 a, %1; setp.eq.u32 p, a, 3; @p mov.u32 a, 9; mov.u32 %0, a; }" // expect: unassigned
                 : "=r"(value) : "r"(x[t])); // expect: unassigned
    y[t] = value; // expect: unassigned
}

extern "C" __global__ void fixed_undefined_register(const unsigned* x, unsigned* y) {
    unsigned t = threadIdx.x, value;
    asm volatile("{ .reg .u32 a; .reg .pred p; .reg .u32 b; setp.lt.u32 p, %1, 20; @p mov.u32 a, %1; add.u32 b, a, 1; @!p mov.u32 a, 4; selp.u32 a, b, a, p; setp.eq.u32 p, a, 3; @p mov.u32 a, 9; mov.u32 %0, a; }"
                 : "=r"(value) : "r"(x[t]));
    y[t] = value;
}
