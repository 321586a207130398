// nvrtc: --gpu-architecture=compute_80
// Irregular data.

extern "C" __global__ void spmv_csr(const unsigned* rows, const unsigned* cols, const float* values, const float* x, float* y, unsigned n) {
    unsigned row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= n) return;
    float sum = 0.0f;
    for (unsigned k = rows[row]; k < rows[row + 1]; ++k) sum = fmaf(values[k], x[cols[k]], sum);
    y[row] = sum;
}

extern "C" __global__ void bfs_step(const unsigned* rows, const unsigned* cols, int* depth, int level, int* changed, unsigned n) {
    unsigned v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v >= n || *(volatile int*)&depth[v] != level) return;
    for (unsigned k = rows[v]; k < rows[v + 1]; ++k)
        if (atomicCAS(&depth[cols[k]], -1, level + 1) == -1) *changed = 1;
}

extern "C" __global__ void relax(const unsigned* from, const unsigned* to, const int* weight, int* distance, unsigned edges) {
    for (unsigned e = blockIdx.x * blockDim.x + threadIdx.x; e < edges; e += gridDim.x * blockDim.x)
        atomicMin(&distance[to[e]], distance[from[e]] + weight[e]);
}

// Keeps what is positive; the order within a warp stays, that of warps does not.
extern "C" __global__ void compact(const int* in, int* out, unsigned* count, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % 32;
    bool keep = i < n && in[i] > 0;
    unsigned kept = __ballot_sync(0xffffffffu, keep);
    unsigned base = 0;
    if (lane == 0 && kept) base = atomicAdd(count, __popc(kept));
    base = __shfl_sync(0xffffffffu, base, 0);
    if (keep) out[base + __popc(kept & ((1u << lane) - 1))] = in[i];
}

extern "C" __global__ void hash_insert(const unsigned* keys, unsigned* table, unsigned* counts, unsigned mask, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned key = keys[i], slot = key * 2654435761u & mask;
    while (true) {
        unsigned old = atomicCAS(&table[slot], 0xffffffffu, key);
        if (old == 0xffffffffu || old == key) {
            atomicAdd(&counts[slot], 1u);
            return;
        }
        slot = (slot + 1) & mask;
    }
}

extern "C" __global__ void list_rank(const unsigned* next, unsigned* rank, unsigned* link, unsigned n) {
    unsigned i = threadIdx.x;
    rank[i] = next[i] == i ? 0 : 1;
    link[i] = next[i];
    __syncthreads();
    for (unsigned k = 1; k < n; k *= 2) {
        unsigned r = rank[link[i]], l = link[link[i]];
        __syncthreads();
        rank[i] += r;
        link[i] = l;
        __syncthreads();
    }
}
