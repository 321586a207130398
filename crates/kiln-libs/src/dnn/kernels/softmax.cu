// Softmax of rows, its logarithm, and their gradients.
//
// TYPE: the element.

#include "network.cuh"

// The greatest of some numbers, and the sum of the powers of their distances from it.
struct Part { f32 greatest, sum; };

__device__ __forceinline__ f32 least() { return -__int_as_float(0x7f800000); }
__device__ __forceinline__ f32 factor(f32 part, f32 whole) { return part == whole ? 1.0f : expf(part - whole); }

__device__ __forceinline__ Part combined(Part a, Part b) {
    Part both;
    both.greatest = a.greatest > b.greatest ? a.greatest : b.greatest;
    both.sum = a.sum * factor(a.greatest, both.greatest) + b.sum * factor(b.greatest, both.greatest);
    return both;
}

template <u32 GROUP> __device__ __forceinline__ Part group_part(Part part) {
#pragma unroll
    for (u32 step = 1; step < LANES; step *= 2) {
        Part other;
        other.greatest = __shfl_xor_sync(ALL_LANES, part.greatest, step);
        other.sum = __shfl_xor_sync(ALL_LANES, part.sum, step);
        // Both lanes of a pair combine in the same order, so that all get the same bits.
        part = threadIdx.x & step ? combined(other, part) : combined(part, other);
    }
    if (GROUP == LANES) return part;
    __shared__ f32 greatest[THREADS / LANES], sums[THREADS / LANES];
    if (threadIdx.x % LANES == 0) greatest[threadIdx.x / LANES] = part.greatest, sums[threadIdx.x / LANES] = part.sum;
    __syncthreads();
    Part all = {greatest[0], sums[0]};
#pragma unroll
    for (u32 w = 1; w < THREADS / LANES; w++) {
        const Part other = {greatest[w], sums[w]};
        all = combined(all, other);
    }
    return all;
}

// Where `x` is missing, `y` holds the numbers. A thread reads an element before it writes it, and no other thread reads that one later.
template <u32 GROUP> __device__ __forceinline__ void softmax(const TYPE* x, u64 rows, u64 columns, TYPE* y, u32 is_log) {
    const u64 row = group_row<GROUP>();
    if (row >= rows) return;
    if (!x) x = y;
    x += row * columns, y += row * columns;
    Part part = {least(), 0.0f};
    for (u64 at = group_lane<GROUP>(); at < columns; at += GROUP) {
        const f32 value = number(x[at]);
        if (value > part.greatest) {
            part.sum = part.sum * expf(part.greatest - value) + 1.0f;
            part.greatest = value;
        } else if (value != least()) {
            part.sum += expf(value - part.greatest);
        }
    }
    part = group_part<GROUP>(part);
    // Infinity has no distance from itself, and no other number has a share beside it: the row is NaN.
    if (part.greatest == -least()) part.sum = __int_as_float(0x7fffffff);
    const f32 logarithm = is_log ? logf(part.sum) : 0.0f;
    for (u64 at = group_lane<GROUP>(); at < columns; at += GROUP) {
        const f32 distance = number(x[at]) - part.greatest;
        y[at] = element<TYPE>(is_log ? distance - logarithm : expf(distance) / part.sum);
    }
}

template <u32 GROUP>
__device__ __forceinline__ void softmax_backward(const TYPE* y, const TYPE* dy, u64 rows, u64 columns, TYPE* dx, u32 is_log) {
    const u64 row = group_row<GROUP>();
    if (row >= rows) return;
    y += row * columns, dy += row * columns, dx += row * columns;
    f32 sum = 0.0f;
    for (u64 at = group_lane<GROUP>(); at < columns; at += GROUP) sum += is_log ? number(dy[at]) : number(dy[at]) * number(y[at]);
    sum = group_sum<GROUP>(sum);
    for (u64 at = group_lane<GROUP>(); at < columns; at += GROUP) {
        const f32 value = number(y[at]), gradient = number(dy[at]);
        dx[at] = element<TYPE>(is_log ? gradient - expf(value) * sum : value * (gradient - sum));
    }
}

#define SOFTMAX(suffix, GROUP) \
    extern "C" __global__ void __launch_bounds__(THREADS) softmax_##suffix(const TYPE* x, u64 rows, u64 columns, TYPE* y, u32 is_log) { \
        softmax<GROUP>(x, rows, columns, y, is_log); \
    } \
    extern "C" __global__ void __launch_bounds__(THREADS) \
    softmax_backward_##suffix(const TYPE* y, const TYPE* dy, u64 rows, u64 columns, TYPE* dx, u32 is_log) { \
        softmax_backward<GROUP>(y, dy, rows, columns, dx, is_log); \
    }

SOFTMAX(warp, LANES)
SOFTMAX(block, THREADS)
