// nvrtc: --gpu-architecture=compute_80
// What kernels say.

extern "C" __global__ void print_values(const int* in, const float* f) {
    unsigned i = threadIdx.x;
    printf("thread %u of %u: %d %5.2f %s %c %llx\n", i, blockDim.x, in[i], f[i], in[i] > 0 ? "up" : "down", 'a' + i, 0x123456789abcull * i);
}

extern "C" __global__ void print_some(int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i % 7 == 0 && i < n) printf("%d%%\n", i);
}

extern "C" __global__ void check_positive(const int* in, int* out, unsigned n) {
    unsigned i = threadIdx.x;
    if (i < n) {
        assert(in[i] > 0);
        out[i] = in[i] * 2;
    }
}
