// Rows and columns of a matrix are exchanged in the index.
// launch: grid 1 block 16,4
// args: in u32 64; out u32 64

extern "C" __global__ void bug_bounds_row_and_column(const unsigned* x, unsigned* y) {
    unsigned c = threadIdx.x, r = threadIdx.y;
    y[r * 16 + c] = x[c * 16 + r]; // expect: undeclared
}

extern "C" __global__ void fixed_bounds_row_and_column(const unsigned* x, unsigned* y) {
    unsigned c = threadIdx.x, r = threadIdx.y;
    y[r * 16 + c] = x[r * 16 + c];
}
