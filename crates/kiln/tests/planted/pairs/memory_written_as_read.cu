// The kernel writes an array that the launch declares as read, by an address it takes from memory.
// launch: grid 1 block 32
// args: in u32 32; out u32 32; addressof 0

extern "C" __global__ void bug_memory_written_as_read(const unsigned* x, unsigned* y, const unsigned long long* same) {
    unsigned t = threadIdx.x;
    ((unsigned*)same[0])[t] = t; // expect: undeclared
    y[t] = x[t];
}

extern "C" __global__ void fixed_memory_written_as_read(const unsigned* x, unsigned* y, const unsigned long long* same) {
    unsigned t = threadIdx.x;
    y[t] = same[0] != 0;
}
