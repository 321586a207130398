// Static and dynamic shared memory, barriers, warp operations.
extern "C" __global__ __launch_bounds__(256, 2) void block_sum(const float* in, float* out, int n) {
    __shared__ float part[256];
    int i = blockIdx.x * 256 + threadIdx.x;
    part[threadIdx.x] = i < n ? in[i] : 0.0f;
    __syncthreads();
    for (int s = 128; s > 0; s >>= 1) {
        if (threadIdx.x < s) part[threadIdx.x] += part[threadIdx.x + s];
        __syncthreads();
    }
    if (threadIdx.x == 0) out[blockIdx.x] = part[0];
}

extern "C" __global__ void warp_sum(const int* in, int* out, unsigned mask) {
    int v = in[threadIdx.x];
    for (int d = 16; d > 0; d >>= 1) v += __shfl_down_sync(0xffffffffu, v, d);
    v += __shfl_sync(mask, v, 3) + __shfl_up_sync(mask, v, 1) + __shfl_xor_sync(mask, v, 5);
    if (__all_sync(mask, v > 0)) v += 1;
    if (__any_sync(mask, v > 9)) v += 2;
    unsigned b = __ballot_sync(mask, v & 1);
    v += __match_any_sync(mask, v) + __reduce_add_sync(mask, v) + __activemask();
    out[threadIdx.x] = v + b;
}

extern "C" __global__ void dynamic_reverse(double* data, int n) {
    extern __shared__ double reversed[];
    int i = threadIdx.x;
    if (i < n) reversed[i] = data[i];
    __syncthreads();
    if (i < n) data[i] = reversed[n - 1 - i];
}

extern "C" __global__ void histogram(const unsigned char* in, unsigned* bins, int n) {
    __shared__ unsigned local[256];
    local[threadIdx.x & 255] = 0;
    __syncthreads();
    for (int i = threadIdx.x; i < n; i += blockDim.x) atomicAdd(&local[in[i]], 1u);
    __syncthreads();
    atomicAdd(&bins[threadIdx.x & 255], local[threadIdx.x & 255]);
}

extern "C" __global__ void transpose(const float* in, float* out, int w, int h) {
    __shared__ float tile[32][33];
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
    if (x < w && y < h) tile[threadIdx.y][threadIdx.x] = in[y * w + x];
    __syncthreads();
    x = blockIdx.y * 32 + threadIdx.x;
    y = blockIdx.x * 32 + threadIdx.y;
    if (x < h && y < w) out[y * h + x] = tile[threadIdx.x][threadIdx.y];
}

extern "C" __global__ void counted(int* out) {
    if (__syncthreads_count(out[threadIdx.x]) > 5 && __syncthreads_or(out[0]) && __syncthreads_and(out[1]))
        out[threadIdx.x] = 0;
    __threadfence();
    __threadfence_block();
    __threadfence_system();
    __syncwarp();
    __nanosleep(20);
}
