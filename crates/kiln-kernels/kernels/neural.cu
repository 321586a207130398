// nvrtc: --gpu-architecture=compute_80
// Building blocks of neural networks.

__device__ float warp_max(float v) {
    for (int k = 16; k > 0; k >>= 1) v = fmaxf(v, __shfl_xor_sync(0xffffffffu, v, k));
    return v;
}

__device__ float warp_sum(float v) {
    for (int k = 16; k > 0; k >>= 1) v += __shfl_xor_sync(0xffffffffu, v, k);
    return v;
}

extern "C" __global__ void softmax(const float* in, float* out, unsigned cols) {
    unsigned row = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32, lane = threadIdx.x % 32;
    const float* from = in + row * cols;
    float top = -3.4e38f;
    for (unsigned c = lane; c < cols; c += 32) top = fmaxf(top, from[c]);
    top = warp_max(top);
    float sum = 0.0f;
    for (unsigned c = lane; c < cols; c += 32) sum += expf(from[c] - top);
    sum = warp_sum(sum);
    for (unsigned c = lane; c < cols; c += 32) out[row * cols + c] = expf(from[c] - top) / sum;
}

extern "C" __global__ void layer_norm(const float* in, const float* gain, const float* bias, float* out, unsigned cols) {
    __shared__ float part[2][8];
    unsigned t = threadIdx.x;
    const float* from = in + blockIdx.x * cols;
    float sum = 0.0f, squares = 0.0f;
    for (unsigned c = t; c < cols; c += blockDim.x) {
        sum += from[c];
        squares += from[c] * from[c];
    }
    sum = warp_sum(sum);
    squares = warp_sum(squares);
    if (t % 32 == 0) {
        part[0][t / 32] = sum;
        part[1][t / 32] = squares;
    }
    __syncthreads();
    sum = squares = 0.0f;
    for (unsigned w = 0; w < blockDim.x / 32; ++w) {
        sum += part[0][w];
        squares += part[1][w];
    }
    float mean = sum / cols, scale = rsqrtf(squares / cols - mean * mean + 1e-5f);
    for (unsigned c = t; c < cols; c += blockDim.x) out[blockIdx.x * cols + c] = (from[c] - mean) * scale * gain[c] + bias[c];
}

extern "C" __global__ void gelu(const float* in, float* out, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        float x = in[i];
        out[i] = 0.5f * x * (1.0f + tanhf(0.7978845608f * (x + 0.044715f * x * x * x)));
    }
}

extern "C" __global__ void max_pool(const float* in, float* out, unsigned width, unsigned height) {
    unsigned x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width / 2 || y >= height / 2) return;
    const float* p = in + 2 * y * width + 2 * x;
    out[y * (width / 2) + x] = fmaxf(fmaxf(p[0], p[1]), fmaxf(p[width], p[width + 1]));
}
