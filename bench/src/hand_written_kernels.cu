// The kernels of Q1 in CUDA C. Parameters are those a program of kiln has: address and count of each buffer, then scalars.

extern "C" __global__ void __launch_bounds__(256)
saxpy(const float* __restrict__ x, unsigned long long, float* __restrict__ y, unsigned long long n, float a) {
    unsigned long long i = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = fmaf(a, x[i], y[i]);
}

extern "C" __global__ void __launch_bounds__(256)
saxpy4(const float* __restrict__ x, unsigned long long, float* __restrict__ y, unsigned long long n, float a) {
    unsigned long long i = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (4 * i + 3 < n) {
        float4 u = reinterpret_cast<const float4*>(x)[i], v = reinterpret_cast<float4*>(y)[i];
        v.x = fmaf(a, u.x, v.x);
        v.y = fmaf(a, u.y, v.y);
        v.z = fmaf(a, u.z, v.z);
        v.w = fmaf(a, u.w, v.w);
        reinterpret_cast<float4*>(y)[i] = v;
    } else {
        for (unsigned long long k = 4 * i; k < n; ++k) y[k] = fmaf(a, x[k], y[k]);
    }
}

extern "C" __global__ void __launch_bounds__(1024)
matrix(const float* __restrict__ a, unsigned long long, const float* __restrict__ b, unsigned long long,
       float* __restrict__ c, unsigned long long, unsigned n) {
    __shared__ float left[32][32], right[32][32];
    unsigned row = blockIdx.y * 32 + threadIdx.y, column = blockIdx.x * 32 + threadIdx.x;
    float sum = 0.0f;
    for (unsigned tile = 0; tile < n / 32; ++tile) {
        left[threadIdx.y][threadIdx.x] = a[row * n + tile * 32 + threadIdx.x];
        right[threadIdx.y][threadIdx.x] = b[(tile * 32 + threadIdx.y) * n + column];
        __syncthreads();
        for (unsigned k = 0; k < 32; ++k) sum = fmaf(left[threadIdx.y][k], right[k][threadIdx.x], sum);
        __syncthreads();
    }
    c[row * n + column] = sum;
}
