// Prefix sums, minima and maxima in one pass over memory.
//
// TYPE: the element; OPERATOR: Sum, Min or Max. A warp holds LOADS rows of 32 accesses of 16 bytes; the elements of a tile stay in registers.
// Each element is read and written once, so caches are told not to keep it.

#include "tile.cuh"

#define THREADS 256
#define LOADS 12
#define BLOCKS 3  // that a multiprocessor is to hold at once, which limits their registers
#define WARPS (THREADS / LANES)

template <class Op>
__device__ __forceinline__ void scan_tile(const TYPE* in, TYPE* out, u64 n, TYPE first_value, u32 is_exclusive, u64* state, u32 tiles) {
    const u32 wide = Wide<TYPE>::count, row = LANES * wide, tile_items = THREADS * wide * LOADS;
    __shared__ TYPE warps[WARPS];
    __shared__ TYPE shared_prefix;
    const u32 lane = threadIdx.x % LANES, warp = threadIdx.x / LANES;
    const Tiles<TYPE, Op> chain(state, tiles);
    const u32 tile = chain.draw(state);
    const u64 start = (u64)tile * tile_items + warp * (row * LOADS) + lane * wide;
    const bool is_whole = (u64)(tile + 1) * tile_items <= n && is_wide(in) && is_wide(out);

    TYPE values[LOADS][wide];
    if (is_whole) {
#pragma unroll
        for (u32 l = 0; l < LOADS; l++) load_wide_once(in + start + l * row, values[l]);
    } else {
#pragma unroll
        for (u32 l = 0; l < LOADS; l++)
#pragma unroll
            for (u32 e = 0; e < wide; e++) values[l][e] = start + l * row + e < n ? in[start + l * row + e] : Op::identity();
    }

    // Each value becomes the prefix inside of its lane, and `before` that of the lane inside of its warp.
    TYPE before[LOADS], sum = Op::identity();
#pragma unroll
    for (u32 l = 0; l < LOADS; l++) {
#pragma unroll
        for (u32 e = 1; e < wide; e++) values[l][e] = Op::of(values[l][e - 1], values[l][e]);
        TYPE inclusive = values[l][wide - 1];
#pragma unroll
        for (u32 step = 1; step < LANES; step *= 2) {
            const TYPE lower = __shfl_up_sync(ALL_LANES, inclusive, step);
            if (lane >= step) inclusive = Op::of(lower, inclusive);
        }
        const TYPE exclusive = __shfl_up_sync(ALL_LANES, inclusive, 1);
        before[l] = lane == 0 ? sum : Op::of(sum, exclusive);
        sum = Op::of(sum, __shfl_sync(ALL_LANES, inclusive, LANES - 1));
    }
    if (lane == 0) warps[warp] = sum;
    __syncthreads();
    TYPE before_warp = Op::identity(), whole = warps[0];
#pragma unroll
    for (u32 w = 0; w < WARPS; w++) {
        if (w < warp) before_warp = Op::of(before_warp, warps[w]);
        if (w > 0) whole = Op::of(whole, warps[w]);
    }
    if (warp == 0) {
        const TYPE prefix = chain.prefix(tile, whole, first_value);
        if (lane == 0) shared_prefix = prefix;
    }
    __syncthreads();
    before_warp = Op::of(shared_prefix, before_warp);

#pragma unroll
    for (u32 l = 0; l < LOADS; l++) {
        const TYPE base = Op::of(before_warp, before[l]);
        TYPE results[wide];
#pragma unroll
        for (u32 e = 0; e < wide; e++) {
            const TYPE exclusive = e == 0 ? base : Op::of(base, values[l][e == 0 ? 0 : e - 1]);
            results[e] = is_exclusive ? exclusive : Op::of(base, values[l][e]);
        }
        if (is_whole) {
            store_wide_once(out + start + l * row, results);
        } else {
#pragma unroll
            for (u32 e = 0; e < wide; e++)
                if (start + l * row + e < n) out[start + l * row + e] = results[e];
        }
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
    scan(const TYPE* in, TYPE* out, u64 n, TYPE first_value, u32 is_exclusive, u64* state, u32 tiles) {
    scan_tile<OPERATOR<TYPE>>(in, out, n, first_value, is_exclusive, state, tiles);
}
