// nvrtc: --gpu-architecture=compute_90 -default-device
// Blocks that wait for each other.

#include <cooperative_groups.h>

extern "C" __global__ void grid_sum(const int* in, int* partial, int* out, unsigned n) {
    cooperative_groups::grid_group grid = cooperative_groups::this_grid();
    __shared__ int s[128];
    unsigned t = threadIdx.x;
    int v = 0;
    for (unsigned i = blockIdx.x * blockDim.x + t; i < n; i += gridDim.x * blockDim.x) v += in[i];
    s[t] = v;
    __syncthreads();
    for (unsigned k = 64; k > 0; k /= 2) {
        if (t < k) s[t] += s[t + k];
        __syncthreads();
    }
    if (t == 0) partial[blockIdx.x] = s[0];
    grid.sync();
    int sum = 0;
    for (unsigned b = 0; b < gridDim.x; ++b) sum += partial[b];
    grid.sync();
    if (t == 0) partial[blockIdx.x] = sum + blockIdx.x;
    grid.sync();
    if (t == 0) out[blockIdx.x] = partial[(blockIdx.x + 1) % gridDim.x];
}
