extern "C" __device__ int printf(const char*, ...);
__device__ unsigned table[4] = {10, 20, 30, 40};
__device__ unsigned* pointer = table + 2;
__constant__ unsigned scale = 3;
extern "C" __global__ void axpy(float a, const float* x, float* y, unsigned n) { unsigned i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) y[i] = a * x[i] + y[i]; }
extern "C" __global__ void past_the_end(unsigned* y, unsigned n) { unsigned i = blockIdx.x * blockDim.x + threadIdx.x; if (i <= n) y[i] = i; }
extern "C" __global__ void ordered(unsigned* y) { __shared__ unsigned s[64]; s[threadIdx.x] = threadIdx.x; __syncthreads(); y[threadIdx.x] = s[(threadIdx.x + 1) % 64]; }
extern "C" __global__ void raced(unsigned* y) { __shared__ unsigned s[64]; s[threadIdx.x] = threadIdx.x; y[threadIdx.x] = s[(threadIdx.x + 33) % 64]; }
extern "C" __global__ void globals(unsigned* y) { unsigned i = threadIdx.x; y[i] = table[i] * scale; if (i == 0) y[4] = *pointer; }
extern "C" __global__ void speak(int n) { if (threadIdx.x == 0) printf("hello %d from block %u\n", n, blockIdx.x); }
extern "C" __global__ void count(unsigned* y) { atomicAdd(y, 1u); }
extern "C" __global__ void forever(unsigned* y) { while (true) { if (atomicAdd(y, 0u) == 12345u) break; } }
