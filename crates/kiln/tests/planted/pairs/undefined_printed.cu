// A value is printed that was never written.
// launch: grid 1 block 1
// args: in u32 32; returned u32 1

extern "C" __device__ int printf(const char*, ...);

extern "C" __global__ void bug_undefined_printed(const unsigned* x, unsigned* y) {
    __shared__ unsigned s[2];
    ((volatile unsigned*)s)[0] = x[0];
    unsigned value = ((volatile unsigned*)s)[1]; // expect: uninitialised
    printf("%u\n", value); // expect: uninitialised
    y[0] = x[1];
}

extern "C" __global__ void fixed_undefined_printed(const unsigned* x, unsigned* y) {
    __shared__ unsigned s[2];
    ((volatile unsigned*)s)[1] = x[0];
    unsigned value = ((volatile unsigned*)s)[1];
    printf("%u\n", value);
    y[0] = x[1];
}
