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

// Looks for the NaN and infinities of a matrix that lies column after column, before a library factors it: a library may move them, or take them for zeros. `found` becomes 0 if
// there are none, otherwise all ones less the smaller of row and column of the first by that measure. Several blocks need a `found` of 0; one alone writes it.
extern "C" __global__ void __launch_bounds__(THREADS) scan_matrix(const TYPE* a, u64 rows, u64 columns, u64 leading, u32* found) {
    __shared__ u32 shared_found;
    if (threadIdx.x == 0) shared_found = 0;
    __syncthreads();
    const u64 start = (u64)blockIdx.x * THREADS + threadIdx.x, step = (u64)gridDim.x * THREADS;
    const u64 row_step = step % rows, column_step = step / rows;
    u64 row = start % rows, column = start / rows;
    u32 own = 0;
    while (column < columns) {
        if (!(fabs(a[row + column * leading]) < Limits<TYPE>::high())) {
            const u64 place = row < column ? row : column;
            own = larger(own, place < 0x7ffffffe ? ~(u32)place : ~0x7ffffffeu);
        }
        row += row_step;
        column += column_step;
        if (row >= rows) {
            row -= rows;
            column++;
        }
    }
    if (own) atomicMax(&shared_found, own);
    __syncthreads();
    if (threadIdx.x > 0) return;
    if (gridDim.x == 1)
        *found = shared_found;
    else if (shared_found)
        atomicMax(found, shared_found);
}

// Looks for what no system of equations can be solved with in triangular factors, which lie column after column: a NaN, an infinity, and, where zeros count, a zero; a zero is
// told only where there is no NaN and no infinity. It looks at the diagonal, behind its end at the last row or column, which a NaN elsewhere reaches, and at row and column of a
// first zero that `before` tells of, where a NaN may stay. `word` becomes minus the place of the first, counted from 1, and `kind` 1 for a zero and 2 for the others. What
// `scanned` has, if it is given, is what `scan_matrix` found in the matrix before, and comes first. Where there is nothing, or `before` tells something that comes first, `word` is
// what `before` is, and `kind` 0. One block does it.
extern "C" __global__ void __launch_bounds__(THREADS)
    check_factors(const TYPE* a, u64 rows, u64 columns, u64 leading, u32 zeros_count, const u32* scanned, const i32* before, i32* word, i32* kind) {
    __shared__ u64 shared_first, shared_zero;
    const u64 n = rows > columns ? rows : columns;
    const i32 told = *before;
    if (threadIdx.x == 0) {
        const u32 found = scanned ? *scanned : 0;
        shared_first = found ? (u64)~found : n;
        shared_zero = n;
    }
    __syncthreads();
    const bool is_scanned = shared_first < n;
    __syncthreads();
    if (!is_scanned) {
        const u64 zero = told > 0 && !zeros_count ? (u64)told - 1 : n;
        if (zero < rows && zero < columns) {
            for (u64 row = threadIdx.x; row < rows; row += THREADS)
                if (!(fabs(a[row + zero * leading]) < Limits<TYPE>::high())) atomicMin(&shared_first, zero);
            for (u64 column = threadIdx.x; column < columns; column += THREADS)
                if (!(fabs(a[zero + column * leading]) < Limits<TYPE>::high())) atomicMin(&shared_first, zero);
        }
        for (u64 at = threadIdx.x; at < n; at += THREADS) {
            const TYPE value = a[(at < rows ? at : rows - 1) + (at < columns ? at : columns - 1) * leading];
            if (!(fabs(value) < Limits<TYPE>::high())) atomicMin(&shared_first, at);
            if (zeros_count && value == 0) atomicMin(&shared_zero, at);
        }
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        // That a matrix with NaN is singular, too, is not what is wrong with it.
        const bool is_finite = shared_first >= n;
        const u64 first = is_finite ? shared_zero : shared_first;
        const bool is_told = told < 0 || (told > 0 && zeros_count);
        if (first < n && !is_told) {
            *word = first < 0x7fffffff ? -(i32)(first + 1) : -0x7fffffff;
            *kind = is_finite ? 1 : 2;
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
