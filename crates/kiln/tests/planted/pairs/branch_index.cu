// A branch through a table takes an index that the table does not have.
// launch: grid 1 block 32
// args: out u32 32; value u32 2

extern "C" __global__ void bug_branch_index(unsigned* y, unsigned index) {
    unsigned value = 0;
    asm volatile("{\n bug_table: .branchtargets bug_first, bug_second;\n brx.idx %1, bug_table;\n bug_first: mov.u32 %0, 1;\n bug_second: add.u32 %0, %0, 1;\n}" : "+r"(value) : "r"(index)); // expect: bad-operand
    y[threadIdx.x] = value;
}

extern "C" __global__ void fixed_branch_index(unsigned* y, unsigned index) {
    unsigned value = 0;
    asm volatile("{\n fixed_table: .branchtargets fixed_first, fixed_second;\n brx.idx %1, fixed_table;\n fixed_first: mov.u32 %0, 1;\n fixed_second: add.u32 %0, %0, 1;\n}" : "+r"(value) : "r"(index - 1));
    y[threadIdx.x] = value;
}
