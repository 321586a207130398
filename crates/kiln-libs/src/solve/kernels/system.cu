// What comes before and after a library that solves a system of equations.
//
// TYPE: the element. Element (i, j) of a matrix lies at i * row_step + j * column_step.

#include "tile.cuh"

#define THREADS 256

// Copies the pivots of n rows, counted from 1, with the row itself in place of one that is no row of 1 to n: a library would move memory outside of the matrix with
// it. `row` becomes 0, or the first such pivot's row, counted from 1, and `value` the pivot. One block does it.
extern "C" __global__ void __launch_bounds__(THREADS) check_pivots(const i64* pivots, u64 n, i64* usable, i32* row, i64* value) {
    __shared__ u64 shared_first;
    if (threadIdx.x == 0) shared_first = n;
    __syncthreads();
    for (u64 at = threadIdx.x; at < n; at += THREADS) {
        const i64 pivot = pivots[at];
        const bool is_row = pivot >= 1 && (u64)pivot <= n;
        usable[at] = is_row ? pivot : (i64)(at + 1);
        if (!is_row) atomicMin(&shared_first, at);
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        const u64 first = shared_first;
        *row = first < n ? (i32)(first + 1) : 0;
        *value = first < n ? pivots[first] : 0;
    }
}

// Looks for what no system of equations can be solved with in triangular factors, which lie column after column: a NaN, an infinity, and, where zeros count, a zero. It
// looks at the diagonal, behind its end at the last row or column, which a NaN elsewhere reaches, and at row and column of a first zero that `before` tells of, where a
// NaN may stay. `word` becomes minus the place of the first, counted from 1, and
// `kind` 1 for a zero and 2 for the others. Where there is none, or `before` tells something that comes first, `word` is what `before` is, and `kind` 0. One block does it.
extern "C" __global__ void __launch_bounds__(THREADS)
    check_factors(const TYPE* a, u64 rows, u64 columns, u64 leading, u32 zeros_count, const i32* before, i32* word, i32* kind) {
    __shared__ u64 shared_first;
    const u64 n = rows > columns ? rows : columns;
    const i32 told = *before;
    if (threadIdx.x == 0) shared_first = n;
    __syncthreads();
    const u64 zero = told > 0 && !zeros_count ? (u64)told - 1 : n;
    if (zero < rows && zero < columns) {
        for (u64 row = threadIdx.x; row < rows; row += THREADS)
            if (!(fabs(a[row + zero * leading]) < Limits<TYPE>::high())) atomicMin(&shared_first, zero);
        for (u64 column = threadIdx.x; column < columns; column += THREADS)
            if (!(fabs(a[zero + column * leading]) < Limits<TYPE>::high())) atomicMin(&shared_first, zero);
    }
    for (u64 at = threadIdx.x; at < n; at += THREADS) {
        const TYPE value = a[(at < rows ? at : rows - 1) + (at < columns ? at : columns - 1) * leading];
        const bool is_finite = fabs(value) < Limits<TYPE>::high();
        if (!is_finite || (zeros_count && value == 0)) atomicMin(&shared_first, at);
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        const u64 first = shared_first;
        // That a matrix with NaN is singular, too, is not what is wrong with it.
        const bool is_told = told < 0 || (told > 0 && zeros_count);
        if (first < n && !is_told) {
            const TYPE value = a[(first < rows ? first : rows - 1) + (first < columns ? first : columns - 1) * leading];
            *word = first < 0x7fffffff ? -(i32)(first + 1) : -0x7fffffff;
            *kind = zeros_count && value == 0 ? 1 : 2;
        } else {
            *word = told;
            *kind = 0;
        }
    }
}

// Copies a matrix into another layout. A thread copies an element.
extern "C" __global__ void __launch_bounds__(THREADS)
    copy_matrix(const TYPE* from, u64 from_row_step, u64 from_column_step, TYPE* to, u64 to_row_step, u64 to_column_step, u64 rows, u64 columns) {
    const u64 at = (u64)blockIdx.x * THREADS + threadIdx.x;
    if (at >= rows * columns) return;
    const u64 row = at / columns, column = at % columns;
    to[row * to_row_step + column * to_column_step] = from[row * from_row_step + column * from_column_step];
}
