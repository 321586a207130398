// An atomic one element past the end.
// launch: grid 1 block 32
// args: inout u32 31

extern "C" __global__ void bug_bounds_atomic(unsigned* y) {
    atomicAdd(&y[threadIdx.x], 1); // expect: undeclared
}

extern "C" __global__ void fixed_bounds_atomic(unsigned* y) {
    if (threadIdx.x < 31) atomicAdd(&y[threadIdx.x], 1);
}
