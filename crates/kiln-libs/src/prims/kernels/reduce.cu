// One value of many. Which elements a thread combines, and in which order, depends on the length alone.
//
// TYPE: the element.

#include "tile.cuh"

#define THREADS 256
#define LOADS 4

template <class Op> __device__ __forceinline__ TYPE combine_block(TYPE value) {
    __shared__ TYPE warps[THREADS / LANES];
    value = combine_lanes<TYPE, Op>(value);
    if (threadIdx.x % LANES == 0) warps[threadIdx.x / LANES] = value;
    __syncthreads();
    TYPE all = warps[0];
#pragma unroll
    for (u32 w = 1; w < THREADS / LANES; w++) all = Op::of(all, warps[w]);
    return all;
}

// Block `b` of `g` combines tiles b, b + g, b + 2g, … and writes output `b`.
template <class Op> __device__ __forceinline__ void reduce(const TYPE* in, u64 n, TYPE* out) {
    const u32 wide = Wide<TYPE>::count, tile_items = THREADS * wide * LOADS;
    const bool is_aligned = is_wide(in);
    TYPE sums[wide];
#pragma unroll
    for (u32 e = 0; e < wide; e++) sums[e] = Op::identity();
    const u64 tiles = (n + tile_items - 1) / tile_items;
    for (u64 tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        const u64 first = tile * tile_items + threadIdx.x * wide;
        if (is_aligned && (tile + 1) * tile_items <= n) {
            TYPE values[LOADS][wide];
#pragma unroll
            for (u32 l = 0; l < LOADS; l++) load_wide(in + first + l * THREADS * wide, values[l]);
#pragma unroll
            for (u32 l = 0; l < LOADS; l++)
#pragma unroll
                for (u32 e = 0; e < wide; e++) sums[e] = Op::of(sums[e], values[l][e]);
        } else {
#pragma unroll 1
            for (u32 l = 0; l < LOADS; l++)
#pragma unroll
                for (u32 e = 0; e < wide; e++) {
                    const u64 at = first + l * THREADS * wide + e;
                    if (at < n) sums[e] = Op::of(sums[e], in[at]);
                }
        }
    }
    TYPE sum = sums[0];
#pragma unroll
    for (u32 e = 1; e < wide; e++) sum = Op::of(sum, sums[e]);
    sum = combine_block<Op>(sum);
    if (threadIdx.x == 0) out[blockIdx.x] = n == 0 ? Op::of_nothing() : sum;
}

#define REDUCE(name, Op) \
    extern "C" __global__ void __launch_bounds__(THREADS) name(const TYPE* in, u64 n, TYPE* out) { reduce<Op<TYPE>>(in, n, out); }

REDUCE(reduce_sum, Sum)
REDUCE(reduce_product, Product)
REDUCE(reduce_min, Min)
REDUCE(reduce_max, Max)

// The least (order, index) of what the lanes of a block have, at thread 0.
__device__ __forceinline__ void least_of_block(u64& key, u64& index) {
    __shared__ u64 keys[THREADS / LANES], indices[THREADS / LANES];
    for (u32 step = LANES / 2; step > 0; step /= 2) {
        const u64 other_key = __shfl_down_sync(ALL_LANES, key, step), other = __shfl_down_sync(ALL_LANES, index, step);
        if (other_key < key || (other_key == key && other < index)) key = other_key, index = other;
    }
    if (threadIdx.x % LANES == 0) keys[threadIdx.x / LANES] = key, indices[threadIdx.x / LANES] = index;
    __syncthreads();
    if (threadIdx.x != 0) return;
    for (u32 w = 1; w < THREADS / LANES; w++)
        if (keys[w] < key || (keys[w] == key && indices[w] < index)) key = keys[w], index = indices[w];
}

// The place of the least element, or of the greatest if `flip` has all bits set: of each block, with its order.
extern "C" __global__ void __launch_bounds__(THREADS) arg_blocks(const TYPE* in, u64 n, u64 flip, u64* keys, u64* indices) {
    u64 key = ~0ull, index = ~0ull;
    for (u64 at = blockIdx.x * (u64)THREADS + threadIdx.x; at < n; at += (u64)gridDim.x * THREADS) {
        const u64 own = ((u64)ordered(in[at]) ^ flip) & (sizeof(TYPE) == 8 ? ~0ull : 0xffffffffull);
        if (own < key || (own == key && at < index)) key = own, index = at;
    }
    least_of_block(key, index);
    if (threadIdx.x == 0) keys[blockIdx.x] = key, indices[blockIdx.x] = index;
}

extern "C" __global__ void __launch_bounds__(THREADS) arg_final(const u64* keys, const u64* indices, u64 n, u64* out) {
    u64 key = ~0ull, index = ~0ull;
    for (u64 at = threadIdx.x; at < n; at += THREADS)
        if (keys[at] < key || (keys[at] == key && indices[at] < index)) key = keys[at], index = indices[at];
    least_of_block(key, index);
    if (threadIdx.x == 0) *out = index;
}
