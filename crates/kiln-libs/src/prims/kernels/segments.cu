// One value of each segment. Segment `s` is the elements from offsets[s] up to offsets[s + 1]; offsets that leave the input are cut.
//
// TYPE: the element. Offsets have 32 or 64 bits.

#include "tile.cuh"

#define THREADS 256

__device__ __forceinline__ u64 offset_at(const void* offsets, u32 are_wide, u64 at, u64 n) {
    const u64 offset = are_wide ? ((const u64*)offsets)[at] : ((const u32*)offsets)[at];
    return offset < n ? offset : n;
}

// A warp for each segment.
template <class Op>
__device__ __forceinline__ void by_warp(const TYPE* in, u64 n, const void* offsets, u32 are_wide, u64 segments, TYPE* out) {
    const u64 segment = (blockIdx.x * (u64)THREADS + threadIdx.x) / LANES;
    if (segment >= segments) return;
    const u64 first = offset_at(offsets, are_wide, segment, n), end = offset_at(offsets, are_wide, segment + 1, n);
    TYPE sum = Op::identity();
    for (u64 at = first + threadIdx.x % LANES; at < end; at += LANES) sum = Op::of(sum, in[at]);
    sum = combine_lanes<TYPE, Op>(sum);
    if (threadIdx.x % LANES == 0) out[segment] = first < end ? sum : Op::of_nothing();
}

// A block for each segment, and for the segments behind the grid again.
template <class Op>
__device__ __forceinline__ void by_block(const TYPE* in, u64 n, const void* offsets, u32 are_wide, u64 segments, TYPE* out) {
    __shared__ TYPE warps[THREADS / LANES];
    for (u64 segment = blockIdx.x; segment < segments; segment += gridDim.x) {
        const u64 first = offset_at(offsets, are_wide, segment, n), end = offset_at(offsets, are_wide, segment + 1, n);
        TYPE sums[4] = {Op::identity(), Op::identity(), Op::identity(), Op::identity()};
        u64 at = first + threadIdx.x;
        for (; at + 3 * THREADS < end; at += 4 * THREADS)
#pragma unroll
            for (u32 e = 0; e < 4; e++) sums[e] = Op::of(sums[e], in[at + e * THREADS]);
        for (; at < end; at += THREADS) sums[0] = Op::of(sums[0], in[at]);
        TYPE sum = Op::of(Op::of(sums[0], sums[1]), Op::of(sums[2], sums[3]));
        sum = combine_lanes<TYPE, Op>(sum);
        if (threadIdx.x % LANES == 0) warps[threadIdx.x / LANES] = sum;
        __syncthreads();
        if (threadIdx.x == 0) {
            for (u32 w = 1; w < THREADS / LANES; w++) sum = Op::of(sum, warps[w]);
            out[segment] = first < end ? sum : Op::of_nothing();
        }
        __syncthreads();
    }
}

#define SEGMENTS(name, by, Op) \
    extern "C" __global__ void __launch_bounds__(THREADS) \
        name(const TYPE* in, u64 n, const void* offsets, u32 are_wide, u64 segments, TYPE* out) { \
        by<Op<TYPE>>(in, n, offsets, are_wide, segments, out); \
    }

SEGMENTS(warp_sum, by_warp, Sum)
SEGMENTS(warp_product, by_warp, Product)
SEGMENTS(warp_min, by_warp, Min)
SEGMENTS(warp_max, by_warp, Max)
SEGMENTS(block_sum, by_block, Sum)
SEGMENTS(block_product, by_block, Product)
SEGMENTS(block_min, by_block, Min)
SEGMENTS(block_max, by_block, Max)
