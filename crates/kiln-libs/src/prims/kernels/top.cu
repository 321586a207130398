// The bound of the k first elements in an order, eight bits a pass from the highest: how many elements have each digit among those whose
// higher bits are the bound's, and then the digit in which element k lies.
//
// KEY: u32 or u64, the bits of an element. The order is that of sort.cu.

#include "tile.cuh"

#define THREADS 256
#define DIGITS 256
#define KEY_BITS (8 * sizeof(KEY))

// chosen[0]: the bits of the bound so far; chosen[1]: how many elements are wanted from those that have these bits.
extern "C" __global__ void __launch_bounds__(THREADS)
    top_count(const KEY* in, u64 n, KEY sign, KEY magnitude, u32 shift, const u64* chosen, u64* counts) {
    __shared__ u32 own[DIGITS];
    own[threadIdx.x] = 0;
    __syncthreads();
    const bool is_first = shift + 8 == KEY_BITS;
    const u64 bound = is_first ? 0 : chosen[0] >> (shift + 8);
    for (u64 at = blockIdx.x * (u64)THREADS + threadIdx.x; at < n; at += (u64)gridDim.x * THREADS) {
        const KEY raw = in[at], key = raw ^ sign ^ (raw >> (KEY_BITS - 1) ? magnitude : (KEY)0);
        if (is_first || (u64)key >> (shift + 8) == bound) atomicAdd(&own[(u32)(key >> shift) & (DIGITS - 1)], 1u);
    }
    __syncthreads();
    if (own[threadIdx.x] != 0) atomicAdd(&counts[threadIdx.x], (u64)own[threadIdx.x]);
}

// Finds the digit, and empties the counts for the next pass. One block.
extern "C" __global__ void __launch_bounds__(DIGITS) top_choose(u64* counts, u64 wanted, u32 shift, u64* chosen) {
    __shared__ u64 before[DIGITS];
    const u64 own = counts[threadIdx.x];
    const bool is_first = shift + 8 == KEY_BITS;
    const u64 bound = is_first ? 0 : chosen[0], left = is_first ? wanted : chosen[1];
    before[threadIdx.x] = own;
    __syncthreads();
    for (u32 step = 1; step < DIGITS; step *= 2) {
        const u64 lower = threadIdx.x >= step ? before[threadIdx.x - step] : 0;
        __syncthreads();
        before[threadIdx.x] += lower;
        __syncthreads();
    }
    const u64 upper = before[threadIdx.x], lower = upper - own;
    if (lower < left && left <= upper) {
        chosen[0] = bound | (u64)threadIdx.x << shift;
        chosen[1] = left - lower;
    }
    counts[threadIdx.x] = 0;
}
