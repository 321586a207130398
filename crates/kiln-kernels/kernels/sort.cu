// nvrtc: --gpu-architecture=compute_80
// Sorting.

extern "C" __global__ void bitonic_sort(int* data) {
    __shared__ int s[512];
    unsigned t = threadIdx.x, base = blockIdx.x * 512;
    s[t] = data[base + t];
    s[t + 256] = data[base + t + 256];
    for (unsigned k = 2; k <= 512; k *= 2)
        for (unsigned j = k / 2; j > 0; j /= 2) {
            __syncthreads();
            unsigned i = 2 * t - (t & (j - 1)), other = i + j;
            bool up = (i & k) == 0;
            int a = s[i], b = s[other];
            if ((a > b) == up) {
                s[i] = b;
                s[other] = a;
            }
        }
    __syncthreads();
    data[base + t] = s[t];
    data[base + t + 256] = s[t + 256];
}

// One block sorts 256 keys bit by bit, keeping the order of equal bits.
extern "C" __global__ void radix_sort(unsigned* data) {
    __shared__ unsigned keys[256], scan[256];
    unsigned t = threadIdx.x, base = blockIdx.x * 256;
    keys[t] = data[base + t];
    __syncthreads();
    for (unsigned bit = 0; bit < 32; ++bit) {
        unsigned key = keys[t], one = key >> bit & 1;
        scan[t] = 1 - one;
        __syncthreads();
        for (unsigned k = 1; k < 256; k *= 2) {
            unsigned v = t >= k ? scan[t - k] : 0;
            __syncthreads();
            scan[t] += v;
            __syncthreads();
        }
        unsigned zeros = scan[255], before = scan[t] - (1 - one);
        unsigned to = one ? zeros + t - before : before;
        __syncthreads();
        keys[to] = key;
        __syncthreads();
    }
    data[base + t] = keys[t];
}

// Every thread sorts its own row in local memory.
extern "C" __global__ void insertion_sort(const float* in, float* out, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    float row[16];
    for (unsigned k = 0; k < n; ++k) row[k] = in[i * n + k];
    for (unsigned k = 1; k < n; ++k) {
        float v = row[k];
        int j = (int)k - 1;
        while (j >= 0 && row[j] > v) {
            row[j + 1] = row[j];
            --j;
        }
        row[j + 1] = v;
    }
    for (unsigned k = 0; k < n; ++k) out[i * n + k] = row[k];
}
