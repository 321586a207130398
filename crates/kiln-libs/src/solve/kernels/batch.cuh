// What the kernels for batches of matrices share. TYPE: the element. Element (i, j) of matrix m lies at m * stride + i * row_step + j * column_step.

#include "tile.cuh"

#define THREADS 128
#define WARPS (THREADS / LANES)

// A matrix in memory of any kind.
struct View {
    TYPE* base;
    u64 row_step, column_step;
    __device__ __forceinline__ TYPE& at(u64 row, u64 column) const { return base[row * row_step + column * column_step]; }
};

__device__ __forceinline__ TYPE* shared_matrix() {
    extern __shared__ __align__(16) unsigned char shared_bytes[];
    return (TYPE*)shared_bytes;
}

__device__ __forceinline__ bool is_finite(TYPE value) { return fabs(value) < Limits<TYPE>::high(); }

// The smaller of row and column of the first NaN or infinity of a matrix by that measure; the longer side if there is none.
__device__ __forceinline__ u64 find_not_finite(const View& a, u64 rows, u64 columns) {
    __shared__ u64 shared_place;
    if (threadIdx.x == 0) shared_place = rows < columns ? columns : rows;
    __syncthreads();
    for (u64 at = threadIdx.x; at < rows * columns; at += THREADS) {
        const u64 row = at % rows, column = at / rows;
        if (!is_finite(a.at(row, column))) atomicMin(&shared_place, row < column ? row : column);
    }
    __syncthreads();
    return shared_place;
}

// The sum over the lanes of a warp, the same in each, in an order that does not change.
template <class T> __device__ __forceinline__ T warp_sum(T value) {
#pragma unroll
    for (u32 step = LANES / 2; step > 0; step /= 2) value += __shfl_xor_sync(ALL_LANES, value, step);
    return value;
}

__device__ __forceinline__ TYPE warp_largest(TYPE value) {
#pragma unroll
    for (u32 step = LANES / 2; step > 0; step /= 2) {
        const TYPE other = __shfl_xor_sync(ALL_LANES, value, step);
        value = other > value ? other : value;
    }
    return value;
}

// The largest power of two that is not above a number that is not negative; the smallest normal number below that, so that its reciprocal is a number.
__device__ __forceinline__ f32 power_of_two(f32 value) {
    const u32 bits = __float_as_uint(value) & 0x7f800000u;
    return __uint_as_float(bits == 0 ? 0x00800000u : bits);
}
__device__ __forceinline__ f64 power_of_two(f64 value) {
    const i64 bits = __double_as_longlong(value) & 0x7ff0000000000000ll;
    return __longlong_as_double(bits == 0 ? 0x0010000000000000ll : bits);
}

// The distance from 1 to the next number.
__device__ __forceinline__ f32 epsilon(f32) { return 1.1920928955078125e-7f; }
__device__ __forceinline__ f64 epsilon(f64) { return 2.220446049250313e-16; }
