// nvrtc: --gpu-architecture=compute_80 -lineinfo
// Kernels with one planted mistake each, and twins without it. A comment names the line the check must report.

extern "C" __global__ void fill(int* out, int n, int guarded) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (guarded && i >= n) return;
    out[i] = i; // fill
}

extern "C" __global__ void read_at(const int* in, int* out, long long at) {
    out[threadIdx.x] = in[at]; // read_at
}

extern "C" __global__ void store_at(char* out, int offset) {
    *(int*)(out + offset) = 7; // store_at
}

extern "C" __global__ void write_shared(int* out, int at) {
    __shared__ int s[8];
    s[at] = 1; // write_shared
    __syncthreads();
    out[0] = s[0];
}

extern "C" __global__ void write_local(int* out, int at, int n) {
    int a[4];
    for (int k = 0; k < n; ++k) a[k * at] = k; // write_local
    out[0] = a[0] + a[3];
}

extern "C" __global__ void heap(int* out, int late, int over, int twice) {
    int* p = (int*)malloc(16);
    p[over] = 5; // heap_over
    if (late) free(p);
    out[0] = p[over]; // heap_late
    if (!late) free(p);
    if (twice) free(p); // heap_twice
}

extern "C" __global__ void read_global(const int* in, int* out) {
    out[threadIdx.x] = in[threadIdx.x]; // read_global
}

extern "C" __global__ void read_shared(int* out, int all) {
    __shared__ int s[64];
    if (all || threadIdx.x % 2 == 0) s[threadIdx.x] = threadIdx.x;
    __syncthreads();
    out[threadIdx.x] = s[63 - threadIdx.x]; // read_shared
}

extern "C" __global__ void read_local(int* out, int n) {
    int a[8];
    for (int k = 0; k < n; ++k) a[k] = k + threadIdx.x;
    out[threadIdx.x] = a[(threadIdx.x + 3) & 7]; // read_local
}

extern "C" __global__ void neighbour(const int* in, int* out, int wait) {
    __shared__ int s[128];
    s[threadIdx.x] = in[threadIdx.x]; // neighbour_write
    if (wait) __syncthreads();
    out[threadIdx.x] = s[(threadIdx.x + 64) & 127]; // neighbour_read
}

extern "C" __global__ void overwrite(int* out, int wait) {
    __shared__ int s[64];
    s[threadIdx.x] = threadIdx.x;
    __syncthreads();
    int v = s[63 - threadIdx.x]; // overwrite_read
    if (wait) __syncthreads();
    s[threadIdx.x] = v * 2; // overwrite_write
    __syncthreads();
    out[threadIdx.x] = s[threadIdx.x];
}

extern "C" __global__ void one_place(int* out, int same) {
    __shared__ int s;
    s = same ? 3 : threadIdx.x; // one_place
    __syncthreads();
    out[threadIdx.x] = s;
}

extern "C" __global__ void bytes(const char* in, char* out, int shift) {
    __shared__ char s[64];
    s[threadIdx.x] = in[threadIdx.x]; // bytes_write
    out[threadIdx.x] = s[(threadIdx.x + shift) & 63]; // bytes_read
}

extern "C" __global__ void warp_exchange(const int* in, int* out, int wait) {
    __shared__ int s[32];
    s[threadIdx.x] = in[threadIdx.x];
    if (wait) __syncwarp();
    out[threadIdx.x] = s[threadIdx.x ^ 1]; // warp_exchange
}

extern "C" __global__ void counted(int* out, int wait) {
    __shared__ int count;
    if (threadIdx.x == 0) count = 0;
    __syncthreads();
    atomicAdd(&count, 1); // counted_add
    if (wait) __syncthreads();
    if (threadIdx.x == 0) out[0] = count; // counted
}

extern "C" __global__ void hand_over(int* out, int fences) {
    __shared__ int data[32];
    __shared__ int flag;
    if (threadIdx.x == 0) flag = 0;
    __syncthreads();
    if (threadIdx.x < 32) {
        data[threadIdx.x] = threadIdx.x + 1;
        __syncwarp();
        if (fences) __threadfence_block();
        if (threadIdx.x == 0) atomicExch(&flag, 1);
    } else {
        while (*(volatile int*)&flag == 0) {}
        if (fences) __threadfence_block();
        out[threadIdx.x - 32] = data[threadIdx.x - 32]; // hand_over
    }
}

extern "C" __global__ void two_barriers(int* out, int split) {
    __shared__ int s[64];
    s[threadIdx.x] = threadIdx.x;
    if (split && threadIdx.x % 32 < 16) {
        __syncthreads(); // two_barriers_first
        out[threadIdx.x] = s[63 - threadIdx.x];
    } else {
        __syncthreads(); // two_barriers_second
        out[threadIdx.x] = s[threadIdx.x];
    }
}

extern "C" __global__ void leave_early(int* out, int n) {
    if ((int)threadIdx.x >= n) return;
    __syncthreads(); // leave_early
    out[threadIdx.x] = 1;
}

extern "C" __global__ void wrong_count(int* out, int count) {
    if (threadIdx.x < 32)
        asm volatile("bar.sync 1, %0;" ::"r"(count) : "memory"); // wrong_count_first
    else
        asm volatile("bar.sync 1, 64;" ::: "memory"); // wrong_count_second
    out[threadIdx.x] = 1;
}

extern "C" __global__ void never_met(int* out, int number) {
    if (threadIdx.x < 32)
        asm volatile("bar.sync 2, 64;" ::: "memory"); // never_met_first
    else
        asm volatile("bar.sync %0, 64;" ::"r"(number) : "memory"); // never_met_second
    out[threadIdx.x] = 1;
}

extern "C" __global__ void crossed_votes(unsigned* out, int crossed) {
    unsigned v;
    if (crossed && threadIdx.x < 16)
        v = __ballot_sync(0xffffffffu, 1); // crossed_votes
    else if (crossed)
        v = __shfl_sync(0xffffffffu, threadIdx.x, 3);
    else
        v = __ballot_sync(0xffffffffu, 1);
    out[threadIdx.x] = v;
}

extern "C" __global__ void foreign_mask(unsigned* out, unsigned mask) {
    out[threadIdx.x] = __shfl_xor_sync(mask, threadIdx.x, 1); // foreign_mask
}

extern "C" __global__ void spin(volatile int* flag, int* out) {
    while (*flag == 0) {} // spin
    out[0] = 1;
}

__device__ __noinline__ int deeper(int n) { return n == 0 ? 2 : deeper(n - 1) / 2 + n; } // deeper

extern "C" __global__ void recurse(int* out, int n) { out[0] = deeper(n); }

extern "C" __global__ void stop(int* out, int trap) {
    if (trap && threadIdx.x == 5) asm volatile("trap;"); // stop
    out[threadIdx.x] = 1;
}

extern "C" __global__ void claim(const int* in, int* out) {
    assert(in[threadIdx.x] < 100); // claim
    out[threadIdx.x] = 1;
}

typedef int (*Step)(int);
extern "C" __global__ void call_pointer(Step* step, int* out) {
    out[0] = step[0](3); // call_pointer
}
