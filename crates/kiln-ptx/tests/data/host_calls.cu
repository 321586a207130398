// printf, assert, malloc and free inside kernels.
extern "C" __device__ int printf(const char*, ...);
extern "C" __device__ void* malloc(size_t);
extern "C" __device__ void free(void*);

extern "C" __global__ void talk(const int* in, int n) {
    int i = threadIdx.x;
    if (i < n) printf("thread %d holds %d of %f\n", i, in[i], 2.5 * n);
}

extern "C" __global__ void insist(const int* in, int* out, int n) {
    assert(in[threadIdx.x] < n);
    out[threadIdx.x] = in[threadIdx.x];
}

extern "C" __global__ void heap(int* out, int n) {
    int* p = (int*)malloc(n * sizeof(int));
    if (!p) return;
    for (int i = 0; i < n; i++) p[i] = i;
    out[threadIdx.x] = p[n / 2];
    free(p);
}

extern "C" __global__ void leak(int** slots, int n) { slots[threadIdx.x] = (int*)malloc(n); }
