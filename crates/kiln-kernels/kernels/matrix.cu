// nvrtc: --gpu-architecture=compute_80
// Dense matrices.

extern "C" __global__ void matmul_naive(const float* a, const float* b, float* c, unsigned n) {
    unsigned x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= n || y >= n) return;
    float sum = 0.0f;
    for (unsigned k = 0; k < n; ++k) sum = fmaf(a[y * n + k], b[k * n + x], sum);
    c[y * n + x] = sum;
}

extern "C" __global__ void matmul_tiled(const float* a, const float* b, float* c, unsigned n) {
    __shared__ float ta[16][16], tb[16][16];
    unsigned x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
    float sum = 0.0f;
    for (unsigned tile = 0; tile < n; tile += 16) {
        ta[threadIdx.y][threadIdx.x] = a[y * n + tile + threadIdx.x];
        tb[threadIdx.y][threadIdx.x] = b[(tile + threadIdx.y) * n + x];
        __syncthreads();
        for (unsigned k = 0; k < 16; ++k) sum = fmaf(ta[threadIdx.y][k], tb[k][threadIdx.x], sum);
        __syncthreads();
    }
    c[y * n + x] = sum;
}

extern "C" __global__ void matmul_f64(const double* a, const double* b, double* c, unsigned n) {
    unsigned x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    double sum = 0.0;
    for (unsigned k = 0; k < n; ++k) sum = fma(a[y * n + k], b[k * n + x], sum);
    c[y * n + x] = sum;
}

extern "C" __global__ void transpose(const float* in, float* out, unsigned width, unsigned height) {
    __shared__ float tile[32][33];
    unsigned x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
    for (unsigned j = 0; j < 32; j += 8)
        if (x < width && y + j < height) tile[threadIdx.y + j][threadIdx.x] = in[(y + j) * width + x];
    __syncthreads();
    x = blockIdx.y * 32 + threadIdx.x;
    y = blockIdx.x * 32 + threadIdx.y;
    for (unsigned j = 0; j < 32; j += 8)
        if (x < height && y + j < width) out[(y + j) * height + x] = tile[threadIdx.x][threadIdx.y + j];
}

extern "C" __global__ void matvec_warp(const float* m, const float* v, float* out, unsigned rows, unsigned cols) {
    unsigned row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (row >= rows) return;
    float sum = 0.0f;
    for (unsigned c = lane; c < cols; c += 32) sum = fmaf(m[row * cols + c], v[c], sum);
    for (int k = 16; k > 0; k >>= 1) sum = __fadd_rn(sum, __shfl_xor_sync(0xffffffffu, sum, k));
    if (lane == 0) out[row] = sum;
}
