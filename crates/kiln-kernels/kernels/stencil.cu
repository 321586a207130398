// nvrtc: --gpu-architecture=compute_80 --fmad=false
// Neighbourhoods.

__constant__ float weights[9] = {0.0625f, 0.125f, 0.0625f, 0.125f, 0.25f, 0.125f, 0.0625f, 0.125f, 0.0625f};

extern "C" __global__ void convolve_1d(const float* in, const float* kernel, float* out, int n, int radius) {
    extern __shared__ float s[];
    int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
    for (int k = t; k < (int)blockDim.x + 2 * radius; k += blockDim.x) {
        int at = (int)(blockIdx.x * blockDim.x) + k - radius;
        s[k] = at >= 0 && at < n ? in[at] : 0.0f;
    }
    __syncthreads();
    if (i >= n) return;
    float sum = 0.0f;
    for (int k = 0; k <= 2 * radius; ++k) sum += s[t + k] * kernel[k];
    out[i] = sum;
}

extern "C" __global__ void convolve_2d(const float* in, float* out, int width, int height) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height) return;
    float sum = 0.0f;
    for (int dy = -1; dy <= 1; ++dy)
        for (int dx = -1; dx <= 1; ++dx) {
            int u = min(max(x + dx, 0), width - 1), v = min(max(y + dy, 0), height - 1);
            sum += in[v * width + u] * weights[(dy + 1) * 3 + dx + 1];
        }
    out[y * width + x] = sum;
}

extern "C" __global__ void jacobi(const double* in, double* out, int width, int height) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height) return;
    int i = y * width + x;
    if (x == 0 || y == 0 || x == width - 1 || y == height - 1)
        out[i] = in[i];
    else
        out[i] = 0.25 * (in[i - 1] + in[i + 1] + in[i - width] + in[i + width]);
}

extern "C" __global__ void life(const unsigned char* in, unsigned char* out, int size) {
    __shared__ unsigned char s[18][18];
    int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
    for (int v = threadIdx.y; v < 18; v += 16)
        for (int u = threadIdx.x; u < 18; u += 16) {
            int gx = (blockIdx.x * 16 + u + size - 1) % size, gy = (blockIdx.y * 16 + v + size - 1) % size;
            s[v][u] = in[gy * size + gx];
        }
    __syncthreads();
    int u = threadIdx.x + 1, v = threadIdx.y + 1;
    int n = s[v - 1][u - 1] + s[v - 1][u] + s[v - 1][u + 1] + s[v][u - 1] + s[v][u + 1] + s[v + 1][u - 1] + s[v + 1][u] + s[v + 1][u + 1];
    out[y * size + x] = n == 3 || (n == 2 && s[v][u]);
}

extern "C" __global__ void heat_3d(const float* in, float* out, int n) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < 1 || y < 1 || x >= n - 1 || y >= n - 1) return;
    for (int z = 1; z < n - 1; ++z) {
        int i = (z * n + y) * n + x;
        out[i] = in[i] + 0.1f * (in[i - 1] + in[i + 1] + in[i - n] + in[i + n] + in[i - n * n] + in[i + n * n] - 6.0f * in[i]);
    }
}
