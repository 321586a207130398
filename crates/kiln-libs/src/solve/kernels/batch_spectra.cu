// Eigenvalues and singular values of many small matrices, by rotations of Jacobi. A block works on a matrix.
//
// The pairs of columns are rotated in rounds: each round has every column in one pair at most, and a sweep of all rounds has each pair once. The order does not depend on the
// device, so that equal matrices give equal bits. `info` is 0, or 1 where the iteration did not converge.

#include "batch.cuh"

// Sweeps over all pairs of columns at most. Ten are enough for nearly every matrix.
#define SWEEP_LIMIT 60

// Pairs of a round, and rounds of a sweep.
__device__ __forceinline__ u64 pairs_of(u64 n) { return (n + 1) / 2; }
__device__ __forceinline__ u64 rounds_of(u64 n) { return 2 * pairs_of(n) - 1; }

// Two columns of a round, the smaller first. Returns false for a column without a partner.
__device__ __forceinline__ bool pair_of(u64 n, u64 round, u64 pair, u64& p, u64& q) {
    const u64 rounds = rounds_of(n);
    const u64 one = pair == 0 ? rounds : (round + pair) % rounds, other = (round + rounds - pair) % rounds;
    p = one < other ? one : other;
    q = one < other ? other : one;
    return q < n;
}

// The rotation that makes ((one, between), (between, other)) diagonal.
__device__ __forceinline__ void make_rotation(TYPE one, TYPE other, TYPE between, TYPE& cosine, TYPE& sine) {
    const TYPE cotangent = (other - one) / (2 * between);
    const TYPE size = 1 / (fabs(cotangent) + sqrt(1 + cotangent * cotangent));
    const TYPE tangent = cotangent < 0 ? -size : size;
    cosine = 1 / sqrt(1 + tangent * tangent);
    sine = tangent * cosine;
}

__device__ __forceinline__ void turn(TYPE cosine, TYPE sine, TYPE& first, TYPE& second) {
    const TYPE one = first, other = second;
    first = cosine * one - sine * other;
    second = sine * one + cosine * other;
}

// The largest value of all threads, the same in each.
__device__ __forceinline__ TYPE block_largest(TYPE value) {
    __shared__ TYPE parts[WARPS];
    value = warp_largest(value);
    if (threadIdx.x % LANES == 0) parts[threadIdx.x / LANES] = value;
    __syncthreads();
    TYPE largest = parts[0];
    for (u32 warp = 1; warp < WARPS; warp++) largest = parts[warp] > largest ? parts[warp] : largest;
    __syncthreads();
    return largest;
}

// Divides a dense matrix by a power of two near its largest element, which is returned; 0 if there is a NaN or an infinity.
__device__ __forceinline__ TYPE scale_to_one(TYPE* w, u64 count) {
    TYPE largest = 0;
    bool is_bad = false;
    for (u64 at = threadIdx.x; at < count; at += THREADS) {
        const TYPE size = fabs(w[at]);
        is_bad |= !is_finite(size);
        largest = size > largest ? size : largest;
    }
    if (__syncthreads_or(is_bad)) return 0;
    const TYPE scale = power_of_two(block_largest(largest)), inverse = 1 / scale;
    for (u64 at = threadIdx.x; at < count; at += THREADS) w[at] *= inverse;
    __syncthreads();
    return scale;
}

__device__ __forceinline__ void make_identity(TYPE* v, u64 n) {
    for (u64 at = threadIdx.x; at < n * n; at += THREADS) v[at] = at % n == at / n ? 1 : 0;
    __syncthreads();
}

// W becomes diagonal, and V, if it is given, is rotated with it. `rotations` has room for n + 1 numbers.
__device__ __forceinline__ bool diagonalize(TYPE* w, TYPE* v, TYPE* rotations, u64 n) {
    const u64 pairs = pairs_of(n), rounds = rounds_of(n);
    const TYPE negligible = epsilon((TYPE)0) / 4;
    for (u32 sweep = 0; sweep < SWEEP_LIMIT; sweep++) {
        bool is_diagonal = true;
        for (u64 round = 0; round < rounds; round++) {
            u64 p, q;
            bool is_rotated = false;
            for (u64 pair = threadIdx.x; pair < pairs; pair += THREADS) {
                TYPE cosine = 1, sine = 0;
                if (pair_of(n, round, pair, p, q) && fabs(w[q * n + p]) > negligible) {
                    make_rotation(w[p * n + p], w[q * n + q], w[q * n + p], cosine, sine);
                    is_rotated = true;
                }
                rotations[2 * pair] = cosine;
                rotations[2 * pair + 1] = sine;
            }
            if (!__syncthreads_or(is_rotated)) continue;
            is_diagonal = false;
            for (u64 at = threadIdx.x; at < pairs * n; at += THREADS) {
                const u64 pair = at / n, row = at % n;
                if (!pair_of(n, round, pair, p, q)) continue;
                turn(rotations[2 * pair], rotations[2 * pair + 1], w[p * n + row], w[q * n + row]);
                if (v) turn(rotations[2 * pair], rotations[2 * pair + 1], v[p * n + row], v[q * n + row]);
            }
            __syncthreads();
            for (u64 at = threadIdx.x; at < pairs * n; at += THREADS) {
                const u64 pair = at / n, column = at % n;
                if (!pair_of(n, round, pair, p, q)) continue;
                const TYPE sine = rotations[2 * pair + 1];
                turn(rotations[2 * pair], sine, w[column * n + p], w[column * n + q]);
                // What the rotation was made for.
                if (sine != 0 && column == p) w[column * n + q] = 0;
                if (sine != 0 && column == q) w[column * n + p] = 0;
            }
            __syncthreads();
        }
        if (is_diagonal) return true;
    }
    return false;
}

// How many numbers come before one of them: those that are smaller, or larger, and those that are equal and come first. One warp does it.
__device__ __forceinline__ u64 place_of(const TYPE* values, u64 step, u64 n, u64 at, bool is_descending) {
    const TYPE value = values[at * step];
    u32 count = 0;
    for (u64 other = threadIdx.x % LANES; other < n; other += LANES) {
        const TYPE with = values[other * step];
        const bool is_before = is_descending ? with > value : with < value;
        if (is_before || (with == value && other < at)) count++;
    }
    return warp_sum(count);
}

// The eigenvalues of a symmetric matrix, of which the lower triangle of `a` is read, in ascending order. Eigenvectors become the columns of `vectors`, which may be the same
// memory.
template <bool HAS_VECTORS>
__device__ __forceinline__ void eigen(const View& a, const View& vectors, u64 n, TYPE* work, TYPE* values, i32* info) {
    TYPE *w = work, *rotations = w + n * n, *v = HAS_VECTORS ? rotations + n + 1 : nullptr;
    for (u64 at = threadIdx.x; at < n * n; at += THREADS) {
        const u64 row = at % n, column = at / n;
        w[at] = row >= column ? a.at(row, column) : a.at(column, row);
    }
    __syncthreads();
    if (HAS_VECTORS) make_identity(v, n);
    const TYPE scale = scale_to_one(w, n * n);
    const bool is_found = scale > 0 && diagonalize(w, v, rotations, n);
    __syncthreads();
    for (u64 at = threadIdx.x / LANES; at < n; at += WARPS) {
        const u64 place = is_found ? place_of(w, n + 1, n, at, false) : at;
        const TYPE missing = absent(Limits<TYPE>::high());
        if (threadIdx.x % LANES == 0) values[place] = is_found ? w[at * n + at] * scale : missing;
        if (HAS_VECTORS)
            for (u64 row = threadIdx.x % LANES; row < n; row += LANES) vectors.at(row, place) = is_found ? v[at * n + row] : missing;
    }
    if (threadIdx.x == 0) *info = is_found ? 0 : 1;
}

extern "C" __global__ void __launch_bounds__(THREADS)
    eigenvalues(const TYPE* a, u64 n, u64 row_step, u64 column_step, u64 stride, TYPE* work, u64 work_stride, TYPE* values, i32* info) {
    const View matrix = {(TYPE*)a + blockIdx.x * stride, row_step, column_step};
    TYPE* own = work ? work + blockIdx.x * work_stride : shared_matrix();
    eigen<false>(matrix, matrix, n, own, values + blockIdx.x * n, info + blockIdx.x);
}

extern "C" __global__ void __launch_bounds__(THREADS)
    eigenvectors(TYPE* a, u64 n, u64 row_step, u64 column_step, u64 stride, u64 vector_row_step, u64 vector_column_step, TYPE* work, u64 work_stride,
                 TYPE* values, i32* info) {
    const View matrix = {a + blockIdx.x * stride, row_step, column_step};
    const View vectors = {matrix.base, vector_row_step, vector_column_step};
    TYPE* own = work ? work + blockIdx.x * work_stride : shared_matrix();
    eigen<true>(matrix, vectors, n, own, values + blockIdx.x * n, info + blockIdx.x);
}

// The product of two columns. One warp does it.
__device__ __forceinline__ TYPE product(const TYPE* one, const TYPE* other, u64 rows) {
    TYPE sum = 0;
    for (u64 row = threadIdx.x % LANES; row < rows; row += LANES) sum += one[row] * other[row];
    return warp_sum(sum);
}

// The columns of W become orthogonal, and V, if it is given, is rotated with them. A warp rotates a pair. Columns below `negligible` are left as they are.
__device__ __forceinline__ bool make_orthogonal(TYPE* w, TYPE* v, u64 rows, u64 n, TYPE negligible) {
    const u64 pairs = pairs_of(n), rounds = rounds_of(n);
    // What rounding leaves in a product of so many elements.
    const TYPE tolerance = epsilon((TYPE)0) * sqrt((TYPE)rows);
    for (u32 sweep = 0; sweep < SWEEP_LIMIT; sweep++) {
        bool is_rotated = false;
        for (u64 round = 0; round < rounds; round++) {
            for (u64 pair = threadIdx.x / LANES; pair < pairs; pair += WARPS) {
                u64 p, q;
                if (!pair_of(n, round, pair, p, q)) continue;
                TYPE *first = w + p * rows, *second = w + q * rows;
                const TYPE one = product(first, first, rows), other = product(second, second, rows), between = product(first, second, rows);
                const bool is_zero = (one < other ? one : other) <= negligible * negligible;
                if (is_zero || fabs(between) <= tolerance * sqrt(one) * sqrt(other)) continue;
                is_rotated = true;
                TYPE cosine, sine;
                make_rotation(one, other, between, cosine, sine);
                for (u64 row = threadIdx.x % LANES; row < rows; row += LANES) turn(cosine, sine, first[row], second[row]);
                if (v)
                    for (u64 row = threadIdx.x % LANES; row < n; row += LANES) turn(cosine, sine, v[p * n + row], v[q * n + row]);
            }
            __syncthreads();
        }
        if (!__syncthreads_or(is_rotated)) return true;
    }
    return false;
}

// A column becomes a vector of length 1 that is orthogonal to all columns before it. One warp does it; row i belongs to lane i % 32.
__device__ __forceinline__ void complete(const View& u, u64 rows, u64 column) {
    const u32 lane = threadIdx.x % LANES;
    for (u64 unit = 0; unit < rows; unit++) {
        for (u64 row = lane; row < rows; row += LANES) u.at(row, column) = row == unit ? 1 : 0;
        // The second pass removes what rounding left in the first.
        for (u64 turns = 0; turns < 2 * column; turns++) {
            const u64 before = turns % column;
            TYPE sum = 0;
            for (u64 row = lane; row < rows; row += LANES) sum += u.at(row, before) * u.at(row, column);
            sum = warp_sum(sum);
            for (u64 row = lane; row < rows; row += LANES) u.at(row, column) -= sum * u.at(row, before);
        }
        TYPE sum = 0;
        for (u64 row = lane; row < rows; row += LANES) sum += u.at(row, column) * u.at(row, column);
        const TYPE square = warp_sum(sum);
        // The squares of what is left of all unit vectors add up to the number of columns that are missing, so that one is as large.
        if (square * 2 * (TYPE)rows >= 1) {
            const TYPE length = sqrt(square);
            for (u64 row = lane; row < rows; row += LANES) u.at(row, column) /= length;
            return;
        }
    }
}

// A matrix with at least as many rows as columns is U diag(s) Vᵀ. Singular values are in descending order; `left` gets U, and `right` V.
template <bool HAS_VECTORS>
__device__ __forceinline__ void decompose(const View& a, u64 rows, u64 n, TYPE* work, TYPE* s, const View& left, const View& right, i32* info) {
    TYPE *w = work, *lengths = w + rows * n, *v = HAS_VECTORS ? lengths + n : nullptr;
    for (u64 at = threadIdx.x; at < rows * n; at += THREADS) w[at] = a.at(at % rows, at / rows);
    __syncthreads();
    if (HAS_VECTORS) make_identity(v, n);
    const TYPE scale = scale_to_one(w, rows * n);
    TYPE negligible = 0;
    bool is_found = scale > 0;
    if (is_found) {
        // Each warp computes the same.
        negligible = epsilon((TYPE)0) * sqrt(product(w, w, rows * n));
        __syncthreads();
        is_found = make_orthogonal(w, v, rows, n, negligible);
    }
    for (u64 at = threadIdx.x / LANES; at < n; at += WARPS) {
        const TYPE length = is_found ? sqrt(product(w + at * rows, w + at * rows, rows)) : (TYPE)0;
        if (threadIdx.x % LANES == 0) lengths[at] = length;
    }
    __syncthreads();
    u64 missing_count = 0;
    for (u64 at = 0; at < n && is_found; at++)
        if (!(lengths[at] > negligible)) missing_count++;
    const TYPE missing = absent(Limits<TYPE>::high());
    for (u64 at = threadIdx.x / LANES; at < n; at += WARPS) {
        const u64 place = is_found ? place_of(lengths, 1, n, at, true) : at;
        const TYPE length = lengths[at];
        if (threadIdx.x % LANES == 0) s[place] = is_found ? length * scale : missing;
        if (HAS_VECTORS) {
            for (u64 row = threadIdx.x % LANES; row < n; row += LANES) right.at(row, place) = is_found ? v[at * n + row] : missing;
            for (u64 row = threadIdx.x % LANES; row < rows; row += LANES) left.at(row, place) = is_found ? w[at * rows + row] / length : missing;
        }
    }
    __syncthreads();
    // Columns of length 0 come last.
    if (HAS_VECTORS && threadIdx.x < LANES)
        for (u64 column = n - missing_count; column < n; column++) complete(left, rows, column);
    if (threadIdx.x == 0) *info = is_found ? 0 : 1;
}

extern "C" __global__ void __launch_bounds__(THREADS)
    singular_values(const TYPE* a, u64 rows, u64 n, u64 row_step, u64 column_step, u64 stride, TYPE* work, u64 work_stride, TYPE* s, i32* info) {
    const View matrix = {(TYPE*)a + blockIdx.x * stride, row_step, column_step};
    TYPE* own = work ? work + blockIdx.x * work_stride : shared_matrix();
    decompose<false>(matrix, rows, n, own, s + blockIdx.x * n, matrix, matrix, info + blockIdx.x);
}

extern "C" __global__ void __launch_bounds__(THREADS)
    svd(const TYPE* a, u64 rows, u64 n, u64 row_step, u64 column_step, u64 stride, TYPE* work, u64 work_stride, TYPE* s, TYPE* left, u64 left_row_step,
        u64 left_column_step, u64 left_stride, TYPE* right, u64 right_row_step, u64 right_column_step, u64 right_stride, i32* info) {
    const View matrix = {(TYPE*)a + blockIdx.x * stride, row_step, column_step};
    const View u = {left + blockIdx.x * left_stride, left_row_step, left_column_step};
    const View v = {right + blockIdx.x * right_stride, right_row_step, right_column_step};
    TYPE* own = work ? work + blockIdx.x * work_stride : shared_matrix();
    decompose<true>(matrix, rows, n, own, s + blockIdx.x * n, u, v, info + blockIdx.x);
}
