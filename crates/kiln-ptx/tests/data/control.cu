// Loops, dense switches that become branch tables, recursion, device functions, early returns.
__device__ __noinline__ int fibonacci(int n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }

__device__ __noinline__ bool odd(unsigned n);
__device__ __noinline__ bool even(unsigned n) { return n == 0 || odd(n - 1); }
__device__ __noinline__ bool odd(unsigned n) { return n != 0 && even(n - 1); }

struct Pair {
    long long first;
    float second;
};

__device__ __noinline__ Pair swap_parts(Pair p, int by) {
    p.first += by;
    p.second *= 2.0f;
    return p;
}

extern "C" __global__ void recurse(int* out, int n) {
    out[threadIdx.x] = fibonacci(n) + (even(n) ? 100 : 200);
}

extern "C" __global__ void pairs(Pair* data, int by) { data[threadIdx.x] = swap_parts(data[threadIdx.x], by); }

extern "C" __global__ void dense_switch(const int* in, int* out, int x) {
    int i = threadIdx.x;
    int v = in[i];
    switch (v) {
        case 0: out[i] = x * 3 + 1; break;
        case 1: out[i] = x / 7; break;
        case 2: out[i] = x % 11; break;
        case 3: out[i] = x << (i & 31); break;
        case 4: out[i] = __popc(x); break;
        case 5: out[i] = __clz(x) ^ i; break;
        case 6: out[i] = -x; break;
        case 7: out[i] = x * x * x; break;
        case 8: out[i] = x - i; break;
        default: out[i] = 77;
    }
}

extern "C" __global__ void collatz(unsigned* data, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned x = data[i], steps = 0;
    while (x > 1) {
        x = (x & 1) ? 3 * x + 1 : x / 2;
        if (++steps > 10000) break;
    }
    data[i] = steps;
}

typedef int (*unary)(int);
__device__ int increment(int x) { return x + 1; }
__device__ int decrement(int x) { return x - 1; }
__device__ unary table[2] = {increment, decrement};

extern "C" __global__ void indirect(int* out, int which) { out[threadIdx.x] = table[which & 1](out[threadIdx.x]); }
