// An array is read through the read-only cache and written later by the same kernel: a cache line may hold either value.
// launch: grid 1 block 64
// args: inout u32 64

extern "C" __global__ void bug_constant_read_before_write(unsigned* x) {
    unsigned value = __ldg(x + 63 - threadIdx.x); // expect: non-coherent
    __syncthreads();
    x[threadIdx.x] = value + 1; // expect: non-coherent
}

extern "C" __global__ void fixed_constant_read_before_write(unsigned* x) {
    unsigned value = *(volatile unsigned*)(x + 63 - threadIdx.x);
    __syncthreads();
    x[threadIdx.x] = value + 1;
}
