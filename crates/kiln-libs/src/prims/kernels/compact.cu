// The elements that are kept, one behind the other in their order, in one pass.
//
// TYPE: the element. By RULE: FLAGS keeps where the byte is not 0; CHANGES keeps an element unless it has the same bits as the one before;
// COMPARE keeps by value; ORDER keeps by the order of the bits, against a bound in device memory.

#include "tile.cuh"

#define THREADS 256
#define ITEMS 16
#define WARPS (THREADS / LANES)
#define TILE (THREADS * ITEMS)

#define FLAGS 0
#define CHANGES 1
#define COMPARE 2
#define ORDER 3

#if RULE == FLAGS
#define RULE_PARAMETERS , const u8* flags
#define KEEP(at, value) (flags[at] != 0)
#elif RULE == CHANGES
#define RULE_PARAMETERS
#define KEEP(at, value) ((at) == 0 || in[(at) - 1] != (value))
#elif RULE == COMPARE
// 0: ==, 1: !=, 2: <, 3: <=, 4: >, 5: >=, 6: at least `bound` and less than `end`.
__device__ __forceinline__ bool holds(u32 comparison, TYPE value, TYPE bound, TYPE end) {
    switch (comparison) {
        case 0: return value == bound;
        case 1: return value != bound;
        case 2: return value < bound;
        case 3: return value <= bound;
        case 4: return value > bound;
        case 5: return value >= bound;
        default: return value >= bound && value < end;
    }
}
#define RULE_PARAMETERS , u32 comparison, TYPE bound, TYPE end
#define KEEP(at, value) holds(comparison, value, bound, end)
#else
// As in sort.cu: the order of keys. `chosen` has the bound, and how many of the elements equal to it are wanted.
__device__ __forceinline__ TYPE fold(TYPE key, TYPE sign, TYPE magnitude) {
    return key ^ sign ^ (key >> (8 * sizeof(TYPE) - 1) ? magnitude : (TYPE)0);
}
#define RULE_PARAMETERS , TYPE sign, TYPE magnitude, const u64* chosen, u32 is_equal, u64 wanted
#define KEEP(at, value) (is_equal ? (u64)fold(value, sign, magnitude) == bound : (u64)fold(value, sign, magnitude) < bound)
#endif

extern "C" __global__ void __launch_bounds__(THREADS)
    compact(const TYPE* in, u64 n, TYPE* out, u64* indices, u64* count, u64* state, u32 tiles RULE_PARAMETERS) {
    __shared__ u32 warps[WARPS];
    __shared__ u64 shared_prefix;
    const u32 lane = threadIdx.x % LANES, warp = threadIdx.x / LANES;
    const Tiles<u64, Sum<u64>> chain(state, tiles);
    const u32 tile = chain.draw(state);
    const u64 first = (u64)tile * TILE + warp * (LANES * ITEMS) + lane;
#if RULE == ORDER
    const u64 bound = chosen[0];
    // Those below the bound come first, then as many of the equal ones as are wanted besides.
    const u64 base = is_equal ? wanted - chosen[1] : 0, limit = wanted;
#else
    const u64 base = 0, limit = n;
#endif

    TYPE values[ITEMS];
    u32 kept[ITEMS], sum = 0;
#pragma unroll
    for (u32 i = 0; i < ITEMS; i++) {
        const u64 at = first + i * LANES;
        bool is_kept = false;
        if (at < n) {
            values[i] = in[at];
            is_kept = KEEP(at, values[i]);
        }
        kept[i] = __ballot_sync(ALL_LANES, is_kept);
        sum += __popc(kept[i]);
    }
    if (lane == 0) warps[warp] = sum;
    __syncthreads();
    u32 before = 0, whole = 0;
#pragma unroll
    for (u32 w = 0; w < WARPS; w++) {
        if (w < warp) before += warps[w];
        whole += warps[w];
    }
    if (warp == 0) {
        const u64 prefix = chain.prefix(tile, whole, 0);
        if (lane == 0) {
            shared_prefix = prefix;
            if (tile == tiles - 1 && count) *count = prefix + whole;
        }
    }
    __syncthreads();
    u64 place = base + shared_prefix + before;
    const u32 below = (1u << lane) - 1;
#pragma unroll
    for (u32 i = 0; i < ITEMS; i++) {
        const u64 target = place + __popc(kept[i] & below);
        if ((kept[i] >> lane & 1) && target < limit) {
            if (out) out[target] = values[i];
            if (indices) indices[target] = first + i * LANES;
        }
        place += __popc(kept[i]);
    }
}

#if RULE == CHANGES
// From the places where runs begin to their lengths.
extern "C" __global__ void __launch_bounds__(THREADS) run_lengths(const u64* starts, const u64* count, u64 n, u64* lengths) {
    const u64 runs = *count;
    for (u64 at = blockIdx.x * (u64)THREADS + threadIdx.x; at < runs; at += (u64)gridDim.x * THREADS)
        lengths[at] = (at + 1 < runs ? starts[at + 1] : n) - starts[at];
}
#endif
