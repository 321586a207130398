// A recursion without an end.
// launch: grid 1 block 1
// args: in u32 1; out u32 1

__device__ __noinline__ unsigned bug_down(const unsigned* x, unsigned n) {
    if (n == 1000) return x[0];
    volatile unsigned here[4] = {n, n + 1, n + 2, x[0]};
    return bug_down(x, n + 2) + here[n % 4]; // expect: stack-overflow
}
extern "C" __global__ void bug_endless_recursion(const unsigned* x, unsigned* y) { y[0] = bug_down(x, 1); }

__device__ __noinline__ unsigned fixed_down(const unsigned* x, unsigned n) {
    if (n == 1000) return x[0];
    volatile unsigned here[4] = {n, n + 1, n + 2, x[0]};
    return fixed_down(x, n + 1) + here[n % 4];
}
extern "C" __global__ void fixed_endless_recursion(const unsigned* x, unsigned* y) { y[0] = fixed_down(x, 900); }
