// All threads of a block write different values to one element.
// launch: grid 1 block 64
// args: out u32 64

extern "C" __global__ void bug_global_two_writers(unsigned* y) {
    y[threadIdx.x / 2] = threadIdx.x; // expect: race
}

extern "C" __global__ void fixed_global_two_writers(unsigned* y) {
    y[threadIdx.x] = threadIdx.x;
}
