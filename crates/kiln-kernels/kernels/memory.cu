// nvrtc: --gpu-architecture=compute_80
// Address spaces.

__device__ unsigned counter = 5;
__device__ int table[4] = {10, 20, 30, 40};
__device__ int* into_table = &table[2];
__constant__ short steps[4] = {1, -2, 3, -4};

extern "C" __global__ void module_variables(int* out) {
    unsigned i = threadIdx.x;
    unsigned mine = atomicAdd(&counter, 2u);
    out[i] = table[i & 3] + steps[i & 3] + *into_table + (int)(mine & 1);
}

__device__ __noinline__ int read_any(const int* p, int i) { return p[i]; }

extern "C" __global__ void generic_pointers(const int* in, int* out) {
    __shared__ int s[32];
    int local[32];
    unsigned t = threadIdx.x;
    s[t] = in[t] + 1;
    for (int k = 0; k < 32; ++k) local[k] = k * in[t];
    __syncthreads();
    const int* p = t % 3 == 0 ? in : t % 3 == 1 ? s : local;
    int v = read_any(p, 31 - t);
    bool spaces = __isShared(s) && __isLocal(local) && __isGlobal(in) && !__isGlobal(s);
    out[t] = v * 2 + spaces;
}

struct Big { int a[10]; double d; char c; };

extern "C" __global__ void struct_argument(Big big, unsigned char tail, int* out) {
    unsigned t = threadIdx.x;
    out[t] = big.a[t % 10] + (int)big.d + big.c + tail;
}

extern "C" __global__ void dynamic_shared(const short* in, short* out, unsigned n) {
    extern __shared__ char bytes[];
    short* s = (short*)bytes;
    double* d = (double*)(bytes + n * 2);
    unsigned t = threadIdx.x;
    s[t] = in[t];
    d[t] = in[t] * 0.5;
    __syncthreads();
    out[t] = s[n - 1 - t] + (short)d[(t + 1) % n];
}

extern "C" __global__ void local_table(const int* in, int* out) {
    int a[64];
    unsigned t = threadIdx.x;
    for (int k = 0; k < 64; ++k) a[(k * 5 + in[t]) & 63] = k;
    int sum = 0;
    for (int k = 0; k < 64; k += 1 + (in[t] & 3)) sum = sum * 31 + a[k];
    out[t] = sum;
}

struct Node { int value; Node* next; };

extern "C" __global__ void heap_list(const int* in, int* out, int n) {
    Node* head = nullptr;
    for (int k = 0; k < n; ++k) {
        Node* node = (Node*)malloc(sizeof(Node));
        if (!node) { out[threadIdx.x] = -1; return; }
        node->value = in[threadIdx.x] + k;
        node->next = head;
        head = node;
    }
    int sum = 0;
    while (head) {
        Node* next = head->next;
        sum = sum * 3 + head->value;
        free(head);
        head = next;
    }
    out[threadIdx.x] = sum;
}

extern "C" __global__ void async_copy(const int4* in, int4* out) {
    __shared__ int4 s[64];
    unsigned t = threadIdx.x;
    unsigned to = (unsigned)__cvta_generic_to_shared(&s[t]);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(in + t) : "memory");
    asm volatile("cp.async.commit_group;" ::: "memory");
    asm volatile("cp.async.wait_group 0;" ::: "memory");
    __syncthreads();
    unsigned small = (unsigned)__cvta_generic_to_shared(&s[t].x);
    out[t] = s[63 - t];
    __syncthreads();
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(small), "l"(in + t), "r"(t & 1 ? 4 : 0) : "memory");
    asm volatile("cp.async.wait_all;" ::: "memory");
    __syncthreads();
    out[64 + t] = s[t];
}

extern "C" __global__ void atomics(const int* in, int* cells, unsigned long long* wide, float* floats, double* doubles) {
    __shared__ int s[4];
    unsigned t = threadIdx.x;
    int v = in[t];
    if (t < 4) s[t] = 0;
    __syncthreads();
    atomicAdd(&cells[0], v); atomicSub(&cells[1], v); atomicMin(&cells[2], v); atomicMax(&cells[3], v);
    atomicAnd(&cells[4], v | 0xff00); atomicOr(&cells[5], v & 0x00ff); atomicXor(&cells[6], v);
    atomicInc((unsigned*)&cells[7], 17u); atomicDec((unsigned*)&cells[8], 11u); atomicMin((unsigned*)&cells[9], (unsigned)v);
    atomicAdd(&wide[0], (unsigned long long)v * 1000003ull); atomicMax(&wide[1], (unsigned long long)(unsigned)v << 20); atomicXor(&wide[2], 1ull << (t & 63));
    atomicAdd(&s[0], v); atomicMax(&s[1], v); atomicOr(&s[2], 1 << (t & 31)); atomicAdd(&s[3], 1);
    atomicAdd(&floats[0], 0.25f * (float)(v & 15)); atomicAdd(&doubles[0], (double)v);
    __syncthreads();
    if (t < 4) cells[10 + t] = s[t];
}
