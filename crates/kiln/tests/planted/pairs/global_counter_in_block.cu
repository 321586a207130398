// A counter in global memory is raised without atomics by the threads of one block.
// launch: grid 1 block 64
// args: inout u32 1

extern "C" __global__ void bug_global_counter_in_block(unsigned* y) {
    y[0] += threadIdx.x; // expect: race
}

extern "C" __global__ void fixed_global_counter_in_block(unsigned* y) {
    atomicAdd(y, threadIdx.x);
}
