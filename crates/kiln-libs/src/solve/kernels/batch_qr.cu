// Orthogonal factors of many small matrices, and least squares. A block works on a matrix, a warp on a column.
//
// Row i of a matrix belongs to lane i % 32 of each warp, so that the lanes of a warp exchange sums only. What is found in a matrix is one word: 0, minus the place of the
// first NaN or infinity, or, where a system is solved, the place of the first zero on the diagonal of R, counted from 1.

#include "batch.cuh"

__device__ __forceinline__ void copy(const View& from, const View& to, u64 rows, u64 columns) {
    for (u64 at = threadIdx.x; at < rows * columns; at += THREADS) to.at(at % rows, at / rows) = from.at(at % rows, at / rows);
    __syncthreads();
}

// The first row from k on that belongs to this lane.
__device__ __forceinline__ u64 first_row(u64 k) {
    const u64 row = k / LANES * LANES + threadIdx.x % LANES;
    return row < k ? row + LANES : row;
}

// Makes the reflection that turns column k, from row k on, to a multiple of the first axis. The multiple replaces the element on the diagonal; the vector, whose first element is
// 1, replaces what lies below. One warp does it. Elements are divided by a power of two, so that no square overflows.
__device__ __forceinline__ void make_reflection(const View& a, u64 rows, u64 k, TYPE* tau) {
    TYPE largest = 0, below = 0;
    for (u64 row = first_row(k); row < rows; row += LANES) {
        const TYPE size = fabs(a.at(row, k));
        largest = size > largest ? size : largest;
        if (row > k && (size > 0 || size != size)) below = 1;
    }
    largest = warp_largest(largest);
    if (warp_largest(below) == 0) {
        // Nothing is left to reflect.
        if (threadIdx.x % LANES == 0) *tau = 0;
        return;
    }
    const TYPE scale = power_of_two(largest), inverse = 1 / scale;
    TYPE sum = 0, diagonal = 0;
    for (u64 row = first_row(k); row < rows; row += LANES) {
        const TYPE value = a.at(row, k) * inverse;
        sum += value * value;
        if (row == k) diagonal = value;
    }
    const TYPE length = sqrt(warp_sum(sum));
    diagonal = __shfl_sync(ALL_LANES, diagonal, (u32)(k % LANES));
    const TYPE image = diagonal > 0 ? -length : length;
    for (u64 row = first_row(k); row < rows; row += LANES)
        a.at(row, k) = row == k ? image * scale : a.at(row, k) * inverse / (diagonal - image);
    if (threadIdx.x % LANES == 0) *tau = (image - diagonal) / image;
}

// Applies reflection k to a column of B. One warp does it.
__device__ __forceinline__ void reflect(const View& a, u64 rows, u64 k, TYPE tau, const View& b, u64 column) {
    if (tau == 0) return;
    TYPE sum = 0;
    for (u64 row = first_row(k); row < rows; row += LANES) sum += (row == k ? (TYPE)1 : a.at(row, k)) * b.at(row, column);
    const TYPE part = tau * warp_sum(sum);
    for (u64 row = first_row(k); row < rows; row += LANES) b.at(row, column) -= part * (row == k ? (TYPE)1 : a.at(row, k));
}

// A matrix becomes R and the vectors of the reflections. Returns the place of the first NaN or infinity, of the matrix or, where elements overflow, of the diagonal of R,
// counted from 1, or 0.
__device__ __forceinline__ u64 factor_qr(const View& a, u64 rows, u64 columns, TYPE* tau) {
    const u64 longer = rows < columns ? columns : rows, count = rows < columns ? rows : columns;
    const u64 place = find_not_finite(a, rows, columns);
    u64 found = place < longer ? place + 1 : 0;
    for (u64 k = 0; k < count; k++) {
        if (threadIdx.x < LANES) make_reflection(a, rows, k, tau + k);
        __syncthreads();
        if (found == 0 && !is_finite(a.at(k, k))) found = k + 1;
        const TYPE factor = tau[k];
        for (u64 column = k + 1 + threadIdx.x / LANES; column < columns; column += WARPS) reflect(a, rows, k, factor, a, column);
        __syncthreads();
    }
    return found;
}

// Solves R X = B for a column of B. One warp does it.
__device__ __forceinline__ void substitute(const View& a, u64 n, const View& b, u64 column) {
    for (u64 k = n; k-- > 0;) {
        TYPE x = 0;
        if (threadIdx.x % LANES == k % LANES) {
            x = b.at(k, column) / a.at(k, k);
            b.at(k, column) = x;
        }
        x = __shfl_sync(ALL_LANES, x, (u32)(k % LANES));
        for (u64 row = threadIdx.x % LANES; row < k; row += LANES) b.at(row, column) -= a.at(row, k) * x;
    }
}

// Factors a matrix and solves for all columns of B. Returns the word of the matrix.
__device__ __forceinline__ i32 solve_least_squares(const View& a, u64 rows, u64 columns, TYPE* tau, const View& b, u64 sides) {
    i32 word = -(i32)factor_qr(a, rows, columns, tau);
    for (u64 column = threadIdx.x / LANES; column < sides; column += WARPS) {
        for (u64 k = 0; k < columns; k++) reflect(a, rows, k, tau[k], b, column);
        substitute(a, columns, b, column);
    }
    for (u64 k = 0; k < columns && word == 0; k++)
        if (a.at(k, k) == 0) word = (i32)(k + 1);
    return word;
}

extern "C" __global__ void __launch_bounds__(THREADS)
    qr(TYPE* a, u64 rows, u64 columns, u64 row_step, u64 column_step, u64 stride, u32 is_in_shared, TYPE* tau, i32* info) {
    const View matrix = {a + blockIdx.x * stride, row_step, column_step};
    TYPE* own = tau + blockIdx.x * (rows < columns ? rows : columns);
    u64 found;
    if (is_in_shared) {
        const View fast = {shared_matrix(), 1, rows};
        copy(matrix, fast, rows, columns);
        found = factor_qr(fast, rows, columns, own);
        copy(fast, matrix, rows, columns);
    } else {
        found = factor_qr(matrix, rows, columns, own);
    }
    if (threadIdx.x == 0) info[blockIdx.x] = -(i32)found;
}

// C becomes Q C or Qᵀ C. Q is the product of `count` reflections.
extern "C" __global__ void __launch_bounds__(THREADS)
    apply_q(const TYPE* a, u64 rows, u64 count, u64 row_step, u64 column_step, u64 stride, const TYPE* tau, u32 is_transposed, TYPE* c, u64 columns,
            u64 c_row_step, u64 c_column_step, u64 c_stride) {
    const View factored = {(TYPE*)a + blockIdx.x * stride, row_step, column_step};
    const View product = {c + blockIdx.x * c_stride, c_row_step, c_column_step};
    const TYPE* own = tau + blockIdx.x * count;
    for (u64 column = threadIdx.x / LANES; column < columns; column += WARPS)
        for (u64 turn = 0; turn < count; turn++) {
            const u64 k = is_transposed ? turn : count - 1 - turn;
            reflect(factored, rows, k, own[k], product, column);
        }
}

extern "C" __global__ void __launch_bounds__(THREADS)
    least_squares(TYPE* a, u64 rows, u64 columns, u64 row_step, u64 column_step, u64 stride, u32 is_in_shared, TYPE* tau, TYPE* b, u64 sides,
                  u64 b_row_step, u64 b_column_step, u64 b_stride, i32* info) {
    const View matrix = {a + blockIdx.x * stride, row_step, column_step};
    const View right = {b + blockIdx.x * b_stride, b_row_step, b_column_step};
    TYPE* own = tau + blockIdx.x * columns;
    i32 word;
    if (is_in_shared) {
        const View fast = {shared_matrix(), 1, rows};
        copy(matrix, fast, rows, columns);
        word = solve_least_squares(fast, rows, columns, own, right, sides);
        copy(fast, matrix, rows, columns);
    } else {
        word = solve_least_squares(matrix, rows, columns, own, right, sides);
    }
    if (threadIdx.x == 0) info[blockIdx.x] = word;
}
