// A radix sort from the lowest digit up, eight bits a pass, stable. Each pass reads and writes its elements once: the place of a digit's
// elements in the output comes from counts that tiles publish for the tiles behind them.
//
// KEY: u32 or u64, the bits of a key; VALUE: u32 or u64, the bits of a value, or not defined; ITEMS: elements of a thread; BLOCKS: blocks that a
// multiprocessor is to hold at once, which limits their registers.
//
// The order of the bits is that of `fold(key)`: `sign` flips bits of all keys, and `magnitude` bits of keys whose highest bit is set. The first
// pass folds, the last one unfolds, and those between see keys that are in order as unsigned numbers.
// Unsigned: 0, 0. Signed: sign = highest bit. Floats: sign = highest bit, magnitude = all others. Descending: all bits of sign flipped.

#include "tile.cuh"

#define THREADS 384
#define WARPS (THREADS / LANES)
#define TILE (THREADS * ITEMS)
#define DIGITS 256
#define KEY_BITS (8 * sizeof(KEY))

// What a tile publishes of a digit: two bits that say what, and a count.
#define OF_TILE 0x40000000u
#define UP_TO_TILE 0x80000000u
#define COUNT 0x3fffffffu

__device__ __forceinline__ KEY fold(KEY key, KEY sign, KEY magnitude) {
    return key ^ sign ^ (key >> (KEY_BITS - 1) ? magnitude : (KEY)0);
}

__device__ __forceinline__ KEY unfold(KEY key, KEY sign, KEY magnitude) {
    key ^= sign;
    return key ^ (key >> (KEY_BITS - 1) ? magnitude : (KEY)0);
}

__device__ __forceinline__ u32 digit_of(KEY key, u32 shift, u32 mask) { return (u32)(key >> shift) & mask; }

__device__ __forceinline__ u32 digit_mask(u32 bits) { return (1u << bits) - 1; }

// The bits of pass `p`: eight, and in the last pass what is left.
__device__ __forceinline__ u32 bits_of_pass(u32 p, u32 first_bit, u32 end_bit) {
    const u32 left = end_bit - first_bit - 8 * p;
    return left < 8 ? left : 8;
}

// Counts the digits of all passes.
extern "C" __global__ void __launch_bounds__(256)
    sort_count(const KEY* keys, u32 n, u32 first_bit, u32 end_bit, KEY sign, KEY magnitude, u32* counts) {
    __shared__ u32 own[sizeof(KEY) * DIGITS];
    const u32 passes = (end_bit - first_bit + 7) / 8, wide = Wide<KEY>::count;
    for (u32 at = threadIdx.x; at < passes * DIGITS; at += blockDim.x) own[at] = 0;
    __syncthreads();
    const u64 step = (u64)gridDim.x * blockDim.x * wide;
    for (u64 first = ((u64)blockIdx.x * blockDim.x + threadIdx.x) * wide; first < n; first += step) {
        KEY some[wide];
        const bool is_whole = first + wide <= n && is_wide(keys);
        if (is_whole) load_wide(keys + first, some);
#pragma unroll
        for (u32 e = 0; e < wide; e++) {
            if (first + e >= n) break;
            const KEY key = fold(is_whole ? some[e] : keys[first + e], sign, magnitude) >> first_bit;
#pragma unroll
            for (u32 p = 0; p < sizeof(KEY); p++)
                if (p < passes) atomicAdd(&own[p * DIGITS + ((u32)(key >> 8 * p) & digit_mask(bits_of_pass(p, first_bit, end_bit)))], 1u);
        }
    }
    __syncthreads();
    for (u32 at = threadIdx.x; at < passes * DIGITS; at += blockDim.x)
        if (own[at] != 0) atomicAdd(&counts[at], own[at]);
}

// The sum of what the threads before this one have, of the first 256 of a block. Every thread of the block calls it.
__device__ __forceinline__ u32 sum_before(u32 value) {
    __shared__ u32 warps[DIGITS / LANES];
    const u32 lane = threadIdx.x % LANES, warp = threadIdx.x / LANES;
    u32 inclusive = value;
#pragma unroll
    for (u32 step = 1; step < LANES; step *= 2) {
        const u32 lower = __shfl_up_sync(ALL_LANES, inclusive, step);
        if (lane >= step) inclusive += lower;
    }
    if (lane == LANES - 1 && warp < DIGITS / LANES) warps[warp] = inclusive;
    __syncthreads();
    u32 before = inclusive - value;
#pragma unroll
    for (u32 w = 0; w < DIGITS / LANES; w++)
        if (w < warp) before += warps[w];
    return before;
}

// Counts of a pass become places in the output. A block for each pass.
extern "C" __global__ void __launch_bounds__(DIGITS) sort_starts(u32* counts) {
    u32* own = counts + blockIdx.x * DIGITS + threadIdx.x;
    *own = sum_before(*own);
}

// The lanes whose digit is the same as this lane's. One instruction inverts the votes of lanes whose bit is clear; written in C, it takes three,
// and the registers for them are not there.
__device__ __forceinline__ u32 same_digit(u32 digit) {
    u32 same = ALL_LANES;
#pragma unroll
    for (u32 bit = 0; bit < 8; bit++) {
        u32 set;
        asm volatile(
            "{ .reg .pred is_set; .reg .b32 one; and.b32 one, %1, %2; setp.ne.u32 is_set, one, 0; "
            "vote.sync.ballot.b32 %0, is_set, 0xffffffff; @!is_set not.b32 %0, %0; }"
            : "=r"(set)
            : "r"(digit), "r"(1u << bit));
        same &= set;
    }
    return same;
}

__device__ __forceinline__ u32 lanes_below() {
    u32 mask;
    asm("mov.u32 %0, %%lanemask_lt;" : "=r"(mask));
    return mask;
}

// The places of a thread's elements in the sorted tile, two in a word.
struct Ranks {
    u32 words[(ITEMS + 1) / 2];
    __device__ __forceinline__ void set(u32 item, u32 rank) { words[item / 2] = item % 2 == 0 ? rank : words[item / 2] | rank << 16; }
    __device__ __forceinline__ u32 get(u32 item) const { return item % 2 == 0 ? words[item / 2] & 0xffff : words[item / 2] >> 16; }
};

// How many elements of a digit the tiles before this one have. Reads several tiles at once, since each read takes long.
__device__ __forceinline__ u32 count_before(const u32* tile_counts, u32 tile, u32 digit) {
    const u32 ahead = 4;
    u32 before = 0;
    for (u32 at = tile; at > 0;) {
        u32 words[ahead];
#pragma unroll
        for (u32 k = 0; k < ahead; k++) words[k] = at > k ? peek(&tile_counts[(at - 1 - k) * DIGITS + digit]) : 0;
#pragma unroll
        for (u32 k = 0; k < ahead; k++) {
            if (words[k] == 0) break;
            before += words[k] & COUNT;
            if (words[k] & UP_TO_TILE) return before;
            at--;
        }
    }
    return before;
}

union Room {
    u32 counts[WARPS][DIGITS];
    KEY keys[TILE];
#ifdef VALUE
    VALUE values[TILE];
#endif
};

// One pass. `starts` has the place of each digit of this pass; `state` is zeros: a counter, and from word 256 on the counts of each tile.
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) sort_pass(
    const KEY* keys_in, KEY* keys_out,
#ifdef VALUE
    const VALUE* values_in, VALUE* values_out,
#endif
    u32 n, u32 shift, u32 bits, KEY sign_in, KEY magnitude_in, KEY sign_out, KEY magnitude_out, const u32* starts, u32* state) {
    __shared__ Room room;
    __shared__ u32 places[DIGITS];
    __shared__ u32 drawn;
    const u32 lane = threadIdx.x % LANES, warp = threadIdx.x / LANES, mask = digit_mask(bits);
    u32* tile_counts = state + DIGITS;
    const SharedArray<u32> counts(room.counts[0]), digit_places(places);
    const SharedArray<u32> own_counts(room.counts[warp]);
    const SharedArray<KEY> sorted(room.keys);

    if (threadIdx.x == 0) drawn = atomicAdd(state, 1u);
    for (u32 at = threadIdx.x; at < WARPS * DIGITS; at += THREADS) counts.set(at, 0);
    __syncthreads();
    const u32 tile = drawn;
    const u32 tile_first = tile * TILE, first = tile_first + warp * (LANES * ITEMS) + lane;
    const u32 in_tile = n - tile_first < TILE ? n - tile_first : TILE;

    // Elements behind the last one have the highest digit, so they come last in the tile.
    KEY keys[ITEMS];
    if (in_tile == TILE) {
#pragma unroll
        for (u32 i = 0; i < ITEMS; i++) keys[i] = fold(keys_in[first + i * LANES], sign_in, magnitude_in);
    } else {
#pragma unroll
        for (u32 i = 0; i < ITEMS; i++)
            keys[i] = first + i * LANES < n ? fold(keys_in[first + i * LANES], sign_in, magnitude_in) : (KEY)~(KEY)0;
    }

    // How often each warp has each digit.
#pragma unroll
    for (u32 i = 0; i < ITEMS; i++) own_counts.add(digit_of(keys[i], shift, mask), 1u);
    __syncthreads();
    u32 count = 0;
    if (threadIdx.x < DIGITS) {
#pragma unroll
        for (u32 w = 0; w < WARPS; w++) {
            const u32 of_warp = counts.get(w * DIGITS + threadIdx.x);
            counts.set(w * DIGITS + threadIdx.x, count);
            count += of_warp;
        }
        publish(&tile_counts[tile * DIGITS + threadIdx.x], (tile == 0 ? UP_TO_TILE : OF_TILE) | count);
    }
    const u32 start = sum_before(threadIdx.x < DIGITS ? count : 0);
    if (threadIdx.x < DIGITS) {
#pragma unroll
        for (u32 w = 0; w < WARPS; w++) counts.set(w * DIGITS + threadIdx.x, counts.get(w * DIGITS + threadIdx.x) + start);
    }
    __syncthreads();

    // The place of each element in the sorted tile. The lanes of one digit take their places together, item by item.
    Ranks ranks;
    const u32 lower = lanes_below();
#pragma unroll
    for (u32 i = 0; i < ITEMS; i++) {
        const u32 digit = digit_of(keys[i], shift, mask), same = same_digit(digit);
        const u32 below = __popc(same & lower), leader = 31 - __clz(same);
        u32 before = 0;
        if (lane == leader) before = own_counts.add(digit, below + 1);
        ranks.set(i, __shfl_sync(ALL_LANES, before, leader) + below);
        __syncwarp();
    }
    __syncthreads();
#pragma unroll
    for (u32 i = 0; i < ITEMS; i++) sorted.set(ranks.get(i), keys[i]);

    // What the tiles before have of each digit.
    if (threadIdx.x < DIGITS) {
        const u32 before = count_before(tile_counts, tile, threadIdx.x);
        if (tile != 0) publish(&tile_counts[tile * DIGITS + threadIdx.x], UP_TO_TILE | (before + count));
        digit_places.set(threadIdx.x, starts[threadIdx.x] + before - start);
    }
    __syncthreads();

#ifdef VALUE
    u32 targets[ITEMS];
#endif
#pragma unroll
    for (u32 i = 0; i < ITEMS; i++) {
        const u32 at = i * THREADS + threadIdx.x;
        const KEY key = sorted.get(at);
        const u32 target = digit_places.get(digit_of(key, shift, mask)) + at;
        if (at < in_tile) keys_out[target] = unfold(key, sign_out, magnitude_out);
#ifdef VALUE
        targets[i] = target;
#endif
    }
#ifdef VALUE
    const SharedArray<VALUE> sorted_values(room.values);
    VALUE values[ITEMS];
#pragma unroll
    for (u32 i = 0; i < ITEMS; i++)
        if (first + i * LANES < n) values[i] = values_in[first + i * LANES];
    __syncthreads();
#pragma unroll
    for (u32 i = 0; i < ITEMS; i++)
        if (ranks.get(i) < in_tile) sorted_values.set(ranks.get(i), values[i]);
    __syncthreads();
#pragma unroll
    for (u32 i = 0; i < ITEMS; i++) {
        const u32 at = i * THREADS + threadIdx.x;
        if (at < in_tile) values_out[targets[i]] = sorted_values.get(at);
    }
#endif
}
