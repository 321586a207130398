// Ways a pointer reaches an address: structs, selects, loops, device functions, memory.
struct View {
    float* data;
    int length;
    const float* weights;
};

__device__ float* remembered;
__device__ int counters[16];
__constant__ float coefficients[4] = {1.0f, 2.0f, 3.0f, 4.0f};
__device__ int* pointer_table[2] = {counters, counters + 4};

extern "C" __global__ void view(View v) {
    int i = threadIdx.x;
    if (i < v.length) v.data[i] = v.weights[i] * coefficients[i & 3];
}

extern "C" __global__ void choose(float* a, float* b, const float* c, int which) {
    float* target = which ? a : b;
    target[threadIdx.x] = c[threadIdx.x];
}

__device__ __noinline__ void store_at(float* p, int i, float v) { p[i] = v; }
__device__ __noinline__ float load_at(const float* p, int i) { return p[i]; }
__device__ __noinline__ float* pick(float* a, float* b, int i) { return (i & 1) ? a + i : b + i; }

extern "C" __global__ void through_calls(float* a, const float* b, int n) {
    store_at(a, threadIdx.x, load_at(b, threadIdx.x + n));
}

extern "C" __global__ void picked(float* a, float* b, float* c) { *pick(a, b, threadIdx.x) = c[0]; }

extern "C" __global__ void chase(int** lists, int* out) {
    int* p = lists[threadIdx.x];
    p[0] = 1;
    out[threadIdx.x] = 2;
}

extern "C" __global__ void remember(float* a, const float* b) {
    remembered = a;
    atomicAdd(&counters[threadIdx.x & 15], (int)b[0]);
}

extern "C" __global__ void use_remembered(const float* b) { remembered[threadIdx.x] = b[threadIdx.x]; }

extern "C" __global__ void globals_only(int n) { *pointer_table[n & 1] = counters[n & 15]; }

extern "C" __global__ void walk(const char* text, int* length) {
    const char* p = text;
    while (*p) p++;
    *length = p - text;
}

extern "C" __global__ void local_pointers(float* a, float* b, int i) {
    float* both[2] = {a, b};
    both[i & 1][threadIdx.x] = 1.0f;
}

extern "C" __global__ void unused(float* a, int n, float* b) { if (n > 0) b[0] = 1.0f; }
