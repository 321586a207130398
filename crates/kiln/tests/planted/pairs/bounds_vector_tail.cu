// The last vector load reaches past an array whose length is no multiple of four.
// launch: grid 1 block 8
// args: in u32 30; out u32 8

extern "C" __global__ void bug_bounds_vector_tail(const unsigned* x, unsigned* y) {
    unsigned t = threadIdx.x;
    if (t * 4 + 0 < 30) {
        uint4 v = ((const uint4*)x)[t]; // expect: undeclared
        y[t] = v.x + v.y + v.z + v.w;
    }
}

extern "C" __global__ void fixed_bounds_vector_tail(const unsigned* x, unsigned* y) {
    unsigned t = threadIdx.x;
    if (t * 4 + 3 < 30) {
        uint4 v = ((const uint4*)x)[t];
        y[t] = v.x + v.y + v.z + v.w;
    }
}
