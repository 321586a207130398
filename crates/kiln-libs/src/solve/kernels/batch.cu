// Factors of many small matrices, and the systems of equations that they solve. A block works on a matrix.
//
// TYPE: the element. Element (i, j) of matrix m lies at m * stride + i * row_step + j * column_step. What the device finds in a matrix is one word, as LAPACK
// has it.

#include "batch.cuh"

// Copies a matrix, or its lower triangle.
__device__ __forceinline__ void copy(const View& from, const View& to, u64 n, bool is_lower) {
    for (u64 at = threadIdx.x; at < n * n; at += THREADS)
        if (!is_lower || at % n >= at / n) to.at(at % n, at / n) = from.at(at % n, at / n);
    __syncthreads();
}

// The lower triangle becomes its Cholesky factor. Returns 0, or the order of the first leading minor that is not positive.
__device__ __forceinline__ u64 factor_cholesky(const View& a, u64 n) {
    __shared__ TYPE shared_root;
    for (u64 k = 0; k < n; k++) {
        if (threadIdx.x == 0) {
            const TYPE pivot = a.at(k, k);
            // Neither a NaN nor an infinity is less.
            shared_root = pivot > 0 && pivot < Limits<TYPE>::high() ? sqrt(pivot) : (TYPE)0;
            if (shared_root > 0) a.at(k, k) = shared_root;
        }
        __syncthreads();
        const TYPE root = shared_root;
        if (!(root > 0)) return k + 1;
        const u64 rest = n - k - 1;
        for (u64 at = threadIdx.x; at < rest; at += THREADS) a.at(k + 1 + at, k) /= root;
        __syncthreads();
        for (u64 at = threadIdx.x; at < rest * rest; at += THREADS) {
            const u64 row = at % rest, column = at / rest;
            if (row >= column) a.at(k + 1 + row, k + 1 + column) -= a.at(k + 1 + row, k) * a.at(k + 1 + column, k);
        }
        __syncthreads();
    }
    return 0;
}

// The row of the element of a column with the largest absolute value, from row k on; of equal ones the first. A NaN counts as infinite, so that it is found.
__device__ __forceinline__ u64 find_pivot(const View& a, u64 n, u64 k) {
    __shared__ TYPE values[THREADS];
    __shared__ u64 rows[THREADS];
    TYPE best = -1;
    u64 best_row = k;
    for (u64 row = k + threadIdx.x; row < n; row += THREADS) {
        const TYPE element = a.at(row, k);
        const TYPE value = is_finite(element) ? fabs(element) : Limits<TYPE>::high();
        if (value > best) {
            best = value;
            best_row = row;
        }
    }
    values[threadIdx.x] = best;
    rows[threadIdx.x] = best_row;
    __syncthreads();
    for (u32 step = THREADS / 2; step > 0; step /= 2) {
        if (threadIdx.x < step) {
            const TYPE other = values[threadIdx.x + step];
            const u64 row = rows[threadIdx.x + step];
            if (other > values[threadIdx.x] || (other == values[threadIdx.x] && row < rows[threadIdx.x])) {
                values[threadIdx.x] = other;
                rows[threadIdx.x] = row;
            }
        }
        __syncthreads();
    }
    const u64 found = rows[0];
    __syncthreads();
    return found;
}

// A matrix becomes its triangular factors. Returns 0, or the place of the first zero on the diagonal of U, counted from 1; or minus the place of the first NaN or infinity:
// of the matrix if it has one, otherwise of the diagonal of U, where elements overflow.
__device__ __forceinline__ i32 factor_lu(const View& a, u64 n, i64* pivots) {
    const u64 place = find_not_finite(a, n, n);
    i32 zero = 0, not_finite = place < n ? (i32)(place + 1) : 0;
    for (u64 k = 0; k < n; k++) {
        const u64 other = find_pivot(a, n, k);
        if (threadIdx.x == 0) pivots[k] = (i64)(other + 1);
        if (other != k)
            for (u64 column = threadIdx.x; column < n; column += THREADS) {
                const TYPE value = a.at(k, column);
                a.at(k, column) = a.at(other, column);
                a.at(other, column) = value;
            }
        __syncthreads();
        const TYPE pivot = a.at(k, k);
        if (pivot == 0) {
            if (zero == 0) zero = (i32)(k + 1);
            // What overflowed in its row stays where it is.
            bool is_bad = false;
            for (u64 column = threadIdx.x; column < n; column += THREADS) is_bad |= !is_finite(a.at(k, column));
            if (__syncthreads_or(is_bad) && not_finite == 0) not_finite = (i32)(k + 1);
            continue;
        }
        if (not_finite == 0 && !is_finite(pivot)) not_finite = (i32)(k + 1);
        const u64 rest = n - k - 1;
        for (u64 at = threadIdx.x; at < rest; at += THREADS) a.at(k + 1 + at, k) /= pivot;
        __syncthreads();
        for (u64 at = threadIdx.x; at < rest * rest; at += THREADS) {
            const u64 row = at % rest, column = at / rest;
            a.at(k + 1 + row, k + 1 + column) -= a.at(k + 1 + row, k) * a.at(k, k + 1 + column);
        }
        __syncthreads();
    }
    return not_finite > 0 ? -not_finite : zero;
}

// Solves T X = B with a triangle T of a square matrix; X replaces B.
__device__ __forceinline__ void substitute(const View& a, bool is_lower, bool is_unit, bool is_transposed, u64 n, const View& b, u64 columns) {
    for (u64 turn = 0; turn < n; turn++) {
        const u64 k = is_lower ? turn : n - 1 - turn, rest = n - turn - 1, first = is_lower ? k + 1 : 0;
        if (!is_unit)
            for (u64 column = threadIdx.x; column < columns; column += THREADS) b.at(k, column) /= a.at(k, k);
        __syncthreads();
        for (u64 at = threadIdx.x; at < rest * columns; at += THREADS) {
            const u64 row = first + at % rest, column = at / rest;
            b.at(row, column) -= (is_transposed ? a.at(k, row) : a.at(row, k)) * b.at(k, column);
        }
        __syncthreads();
    }
}

extern "C" __global__ void __launch_bounds__(THREADS)
    cholesky(TYPE* a, u64 n, u64 row_step, u64 column_step, u64 stride, u32 is_in_shared, i32* info) {
    const View matrix = {a + blockIdx.x * stride, row_step, column_step};
    u64 minor;
    if (is_in_shared) {
        const View fast = {shared_matrix(), 1, n};
        copy(matrix, fast, n, true);
        minor = factor_cholesky(fast, n);
        __syncthreads();
        copy(fast, matrix, n, true);
    } else {
        minor = factor_cholesky(matrix, n);
    }
    if (threadIdx.x == 0) info[blockIdx.x] = (i32)minor;
}

extern "C" __global__ void __launch_bounds__(THREADS)
    cholesky_solve(const TYPE* a, u64 n, u64 row_step, u64 column_step, u64 stride, TYPE* b, u64 columns, u64 b_row_step, u64 b_column_step,
                   u64 b_stride) {
    const View factor = {(TYPE*)a + blockIdx.x * stride, row_step, column_step};
    const View right = {b + blockIdx.x * b_stride, b_row_step, b_column_step};
    substitute(factor, true, false, false, n, right, columns);
    substitute(factor, false, false, true, n, right, columns);
}

extern "C" __global__ void __launch_bounds__(THREADS)
    lu(TYPE* a, u64 n, u64 row_step, u64 column_step, u64 stride, u32 is_in_shared, i64* pivots, i32* info) {
    const View matrix = {a + blockIdx.x * stride, row_step, column_step};
    i32 word;
    if (is_in_shared) {
        const View fast = {shared_matrix(), 1, n};
        copy(matrix, fast, n, false);
        word = factor_lu(fast, n, pivots + blockIdx.x * n);
        __syncthreads();
        copy(fast, matrix, n, false);
    } else {
        word = factor_lu(matrix, n, pivots + blockIdx.x * n);
    }
    if (threadIdx.x == 0) info[blockIdx.x] = word;
}

// A matrix whose pivots are not all rows of 1 to n is left out: its word is the first such pivot's row, counted from 1, and `values` has the pivot. Where the diagonal of
// the factors has a zero, a NaN or an infinity, the word is minus the row of the first, and `values` has 1 for a zero and 2 for the others; a zero is told only where there is no NaN and no infinity. The system is solved as
// it is.
extern "C" __global__ void __launch_bounds__(THREADS)
    lu_solve(const TYPE* a, u64 n, u64 row_step, u64 column_step, u64 stride, const i64* pivots, TYPE* b, u64 columns, u64 b_row_step,
             u64 b_column_step, u64 b_stride, i32* info, i64* values) {
    const View factors = {(TYPE*)a + blockIdx.x * stride, row_step, column_step};
    const View right = {b + blockIdx.x * b_stride, b_row_step, b_column_step};
    const i64* own = pivots + blockIdx.x * n;
    __shared__ u64 shared_first, shared_zero;
    if (threadIdx.x == 0) shared_first = n;
    __syncthreads();
    for (u64 row = threadIdx.x; row < n; row += THREADS)
        if (own[row] < 1 || (u64)own[row] > n) atomicMin(&shared_first, row);
    __syncthreads();
    const u64 first = shared_first;
    if (threadIdx.x == 0) {
        info[blockIdx.x] = first < n ? (i32)(first + 1) : 0;
        values[blockIdx.x] = first < n ? own[first] : 0;
    }
    if (first < n) return;
    __syncthreads();
    if (threadIdx.x == 0) shared_first = shared_zero = n;
    __syncthreads();
    for (u64 row = threadIdx.x; row < n; row += THREADS) {
        const TYPE value = factors.at(row, row);
        if (!is_finite(value)) atomicMin(&shared_first, row);
        if (value == 0) atomicMin(&shared_zero, row);
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        const bool has_zero = shared_first >= n;
        const u64 row = has_zero ? shared_zero : shared_first;
        if (row < n) {
            info[blockIdx.x] = -(i32)(row + 1);
            values[blockIdx.x] = has_zero ? 1 : 2;
        }
    }
    for (u64 column = threadIdx.x; column < columns; column += THREADS)
        for (u64 k = 0; k < n; k++) {
            const u64 other = (u64)own[k] - 1;
            const TYPE value = right.at(k, column);
            right.at(k, column) = right.at(other, column);
            right.at(other, column) = value;
        }
    __syncthreads();
    substitute(factors, true, true, false, n, right, columns);
    substitute(factors, false, false, false, n, right, columns);
}
