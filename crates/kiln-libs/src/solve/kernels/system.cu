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

// Copies a matrix into another layout. A thread copies an element.
extern "C" __global__ void __launch_bounds__(THREADS)
    copy_matrix(const TYPE* from, u64 from_row_step, u64 from_column_step, TYPE* to, u64 to_row_step, u64 to_column_step, u64 rows, u64 columns) {
    const u64 at = (u64)blockIdx.x * THREADS + threadIdx.x;
    if (at >= rows * columns) return;
    const u64 row = at / columns, column = at % columns;
    to[row * to_row_step + column * to_column_step] = from[row * from_row_step + column * from_column_step];
}
