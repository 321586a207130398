// Blocks add to one element with atomics of block scope.
// launch: grid 4 block 32
// args: inout u32 1

extern "C" __global__ void bug_blocks_block_scope_atomic(unsigned* sum) {
    atomicAdd_block(sum, 1); // expect: race
}

extern "C" __global__ void fixed_blocks_block_scope_atomic(unsigned* sum) {
    atomicAdd(sum, 1);
}
