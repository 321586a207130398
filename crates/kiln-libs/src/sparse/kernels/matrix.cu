// Sparse matrices in compressed rows: made of dense ones, triangular systems of equations, products.
//
// TYPE: the element; INDEX: offsets and columns. A warp works on a row. Offsets and columns that are out of range lead to results without a meaning,
// but to no access outside of the arrays.

#include "tile.cuh"

#define THREADS 256
#define WARPS (THREADS / LANES)
// From so many right-hand sides on, each lane has some, instead of some elements of the row.
#define WIDE_SIDES 16

__device__ __forceinline__ u64 cut(INDEX offset, u64 n) { return (u64)offset < n ? (u64)offset : n; }

// Elements of each row that are not zero, behind a 0: the sums of these are the offsets.
extern "C" __global__ void __launch_bounds__(THREADS)
    count_nonzeros(const TYPE* dense, u64 rows, u64 columns, u64 row_step, u64 column_step, INDEX* counts) {
    const u64 row = blockIdx.x * (u64)WARPS + threadIdx.x / LANES;
    const u32 lane = threadIdx.x % LANES;
    if (row >= rows) return;
    u64 count = 0;
    for (u64 column = lane; column < columns; column += LANES) count += dense[row * row_step + column * column_step] != 0;
    count = combine_lanes<u64, Sum<u64>>(count);
    if (lane == 0) counts[row + 1] = (INDEX)count;
    if (lane == 0 && row == 0) counts[0] = 0;
}

extern "C" __global__ void __launch_bounds__(THREADS)
    copy_nonzeros(const TYPE* dense, u64 rows, u64 columns, u64 row_step, u64 column_step, const INDEX* offsets, u64 n, INDEX* indices,
                  TYPE* values) {
    const u64 row = blockIdx.x * (u64)WARPS + threadIdx.x / LANES;
    const u32 lane = threadIdx.x % LANES, below = (1u << lane) - 1;
    if (row >= rows) return;
    u64 place = cut(offsets[row], n);
    const u64 end = cut(offsets[row + 1], n);
    for (u64 base = 0; base < columns; base += LANES) {
        const u64 column = base + lane;
        const TYPE value = column < columns ? dense[row * row_step + column * column_step] : (TYPE)0;
        const u32 kept = __ballot_sync(ALL_LANES, value != 0);
        const u64 target = place + __popc(kept & below);
        if (value != 0 && target < end) {
            indices[target] = (INDEX)column;
            values[target] = value;
        }
        place += __popc(kept);
    }
}

// A row that is solved. Reading the mark makes the row's results visible, too.
__device__ __forceinline__ void mark(u32* done) { asm volatile("st.release.gpu.global.u32 [%0], 1;" : : "l"(done) : "memory"); }
__device__ __forceinline__ void wait_for(const u32* done) {
    u32 word;
    do asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(word) : "l"(done) : "memory");
    while (word == 0);
}

// Solves A X = alpha B row by row, from the first row of a lower triangle, or from the last of an upper one. Rows are drawn in that order as blocks start, and
// a row waits for rows that were drawn before it, so some row can always go on. Sums are made in the same order in every run.
//
// `state` is zeros: a counter, then a mark for each row. `info` is 0, or `order` minus the first row without a diagonal.
extern "C" __global__ void __launch_bounds__(THREADS)
    solve_triangular(const INDEX* offsets, const INDEX* columns, const TYPE* values, u64 order, u64 n, const TYPE* b, u64 b_row, u64 b_column,
                     TYPE* x, u64 x_row, u64 x_column, u64 sides, TYPE alpha, u32 is_upper, u32 is_unit, u32* state, u64* info) {
    __shared__ u32 drawn;
    if (threadIdx.x == 0) drawn = atomicAdd(state, 1u);
    __syncthreads();
    const u64 turn = (u64)drawn * WARPS + threadIdx.x / LANES;
    const u32 lane = threadIdx.x % LANES;
    u32* const done = state + 1;
    if (turn >= order) return;
    const u64 row = is_upper ? order - 1 - turn : turn, first = cut(offsets[row], n), last = cut(offsets[row + 1], n);
    // Columns of the triangle beside the diagonal.
    const u64 low = is_upper ? row + 1 : 0, high = is_upper ? order : row;

    TYPE diagonal = 0;
    for (u64 at = first + lane; at < last; at += LANES) {
        const u64 column = (u64)columns[at];
        if (column == row) diagonal += values[at];
        if (column >= low && column < high) wait_for(done + column);
    }
    diagonal = combine_lanes<TYPE, Sum<TYPE>>(diagonal);
    if (is_unit) diagonal = 1;
    else if (diagonal == 0 && lane == 0) atomicMax(info, order - row);
    __threadfence();
    __syncwarp();

    const TYPE* const right = b ? b : x;
    if (sides < WIDE_SIDES) {
        for (u64 side = 0; side < sides; side++) {
            TYPE sum = 0;
            for (u64 at = first + lane; at < last; at += LANES) {
                const u64 column = (u64)columns[at];
                if (column >= low && column < high) sum += values[at] * x[column * x_row + side * x_column];
            }
            sum = combine_lanes<TYPE, Sum<TYPE>>(sum);
            if (lane == 0) x[row * x_row + side * x_column] = (alpha * right[row * b_row + side * b_column] - sum) / diagonal;
        }
    } else {
        for (u64 side = lane; side < sides; side += LANES) {
            TYPE sum = 0;
            for (u64 at = first; at < last; at++) {
                const u64 column = (u64)columns[at];
                if (column >= low && column < high) sum += values[at] * x[column * x_row + side * x_column];
            }
            x[row * x_row + side * x_column] = (alpha * right[row * b_row + side * b_column] - sum) / diagonal;
        }
    }
    __threadfence();
    __syncwarp();
    if (lane == 0) mark(done + row);
}

// C = alpha A B + beta C at the elements that C stores, whose columns ascend in each row. Terms are added in the order of A's elements, so sums are the same
// in every run unless a row of B has a column twice.
extern "C" __global__ void __launch_bounds__(THREADS)
    multiply(const INDEX* a_offsets, const INDEX* a_columns, const TYPE* a_values, u64 rows, u64 a_n, const INDEX* b_offsets,
             const INDEX* b_columns, const TYPE* b_values, u64 b_rows, u64 b_n, const INDEX* c_offsets, const INDEX* c_columns, TYPE* c_values,
             u64 c_n, TYPE alpha, TYPE beta, u32 has_beta) {
    const u64 row = blockIdx.x * (u64)WARPS + threadIdx.x / LANES;
    const u32 lane = threadIdx.x % LANES;
    if (row >= rows) return;
    const u64 c_first = cut(c_offsets[row], c_n), c_last = cut(c_offsets[row + 1], c_n);
    for (u64 at = c_first + lane; at < c_last; at += LANES) c_values[at] = has_beta ? beta * c_values[at] : (TYPE)0;
    __syncwarp();
    const u64 a_last = cut(a_offsets[row + 1], a_n);
    for (u64 a = cut(a_offsets[row], a_n); a < a_last; a++) {
        const u64 inner = (u64)a_columns[a];
        if (inner >= b_rows) continue;
        const TYPE factor = alpha * a_values[a];
        const u64 b_last = cut(b_offsets[inner + 1], b_n);
        for (u64 b = cut(b_offsets[inner], b_n) + lane; b < b_last; b += LANES) {
            const INDEX column = b_columns[b];
            u64 from = c_first, to = c_last;
            while (from < to) {
                const u64 middle = from + (to - from) / 2;
                if (c_columns[middle] < column) from = middle + 1;
                else to = middle;
            }
            if (from < c_last && c_columns[from] == column) atomicAdd(c_values + from, factor * b_values[b]);
        }
        __syncwarp();
    }
}
