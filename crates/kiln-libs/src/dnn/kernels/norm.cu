// Normalisation of rows: by mean and deviation (layer), or by the root of the mean square (RMS), and its gradients.
//
// TYPE: the element.

#include "network.cuh"

// `y = (x - mean) scale weight + bias`; without `is_centred` the mean is 0. Weight and bias, and places for mean and scale, may be missing.
template <u32 GROUP>
__device__ __forceinline__ void norm(
    const TYPE* x, const TYPE* weight, const TYPE* bias, u64 rows, u64 columns, f32 epsilon, u32 is_centred, TYPE* y, f32* means, f32* scales
) {
    const u64 row = group_row<GROUP>();
    if (row >= rows) return;
    x += row * columns, y += row * columns;
    f32 mean = 0.0f;
    if (is_centred) {
        f32 sum = 0.0f;
        for (u64 at = group_lane<GROUP>(); at < columns; at += GROUP) sum += number(x[at]);
        mean = group_sum<GROUP>(sum) / (f32)columns;
    }
    f32 squares = 0.0f;
    for (u64 at = group_lane<GROUP>(); at < columns; at += GROUP) {
        const f32 distance = number(x[at]) - mean;
        squares += distance * distance;
    }
    const f32 scale = 1.0f / sqrtf(group_sum<GROUP>(squares) / (f32)columns + epsilon);
    for (u64 at = group_lane<GROUP>(); at < columns; at += GROUP) {
        f32 value = (number(x[at]) - mean) * scale;
        if (weight) value *= number(weight[at]);
        if (bias) value += number(bias[at]);
        y[at] = element<TYPE>(value);
    }
    if (group_lane<GROUP>() == 0) {
        if (means) means[row] = mean;
        if (scales) scales[row] = scale;
    }
}

// The gradient of the input. Means are missing without `is_centred`.
template <u32 GROUP>
__device__ __forceinline__ void norm_backward(
    const TYPE* x, const TYPE* dy, const TYPE* weight, const f32* means, const f32* scales, u64 rows, u64 columns, TYPE* dx
) {
    const u64 row = group_row<GROUP>();
    if (row >= rows) return;
    x += row * columns, dy += row * columns, dx += row * columns;
    const f32 mean = means ? means[row] : 0.0f, scale = scales[row];
    f32 gradients = 0.0f, products = 0.0f;
    for (u64 at = group_lane<GROUP>(); at < columns; at += GROUP) {
        const f32 gradient = weight ? number(dy[at]) * number(weight[at]) : number(dy[at]);
        gradients += gradient;
        products += gradient * (number(x[at]) - mean) * scale;
    }
    gradients = means ? group_sum<GROUP>(gradients) / (f32)columns : 0.0f;
    products = group_sum<GROUP>(products) / (f32)columns;
    for (u64 at = group_lane<GROUP>(); at < columns; at += GROUP) {
        const f32 gradient = weight ? number(dy[at]) * number(weight[at]) : number(dy[at]);
        const f32 normal = (number(x[at]) - mean) * scale;
        dx[at] = element<TYPE>(scale * (gradient - gradients - normal * products));
    }
}

#define NORM(suffix, GROUP) \
    extern "C" __global__ void __launch_bounds__(THREADS) norm_##suffix( \
        const TYPE* x, const TYPE* weight, const TYPE* bias, u64 rows, u64 columns, f32 epsilon, u32 is_centred, TYPE* y, f32* means, \
        f32* scales \
    ) { \
        norm<GROUP>(x, weight, bias, rows, columns, epsilon, is_centred, y, means, scales); \
    } \
    extern "C" __global__ void __launch_bounds__(THREADS) norm_backward_##suffix( \
        const TYPE* x, const TYPE* dy, const TYPE* weight, const f32* means, const f32* scales, u64 rows, u64 columns, TYPE* dx \
    ) { \
        norm_backward<GROUP>(x, dy, weight, means, scales, rows, columns, dx); \
    }

NORM(warp, LANES)
NORM(block, THREADS)

// Sums over the rows of a part, for each column: of `dy` times the normal form of `x`, and of `dy`. Block `b` has tile `b % tiles` of the columns and part
// `b / tiles` of the rows.
extern "C" __global__ void __launch_bounds__(THREADS) norm_weights_parts(
    const TYPE* x, const TYPE* dy, const f32* means, const f32* scales, u64 rows, u64 columns, u64 part_rows, f32* weight_parts, f32* bias_parts
) {
    const u64 tiles = (columns + THREADS - 1) / THREADS;
    const u64 column = blockIdx.x % tiles * THREADS + threadIdx.x, part = blockIdx.x / tiles;
    if (column >= columns) return;
    f32 weight = 0.0f, bias = 0.0f;
    const u64 first = part * part_rows, last = first + part_rows < rows ? first + part_rows : rows;
    for (u64 row = first; row < last; row++) {
        const f32 gradient = number(dy[row * columns + column]), mean = means ? means[row] : 0.0f;
        weight += gradient * ((number(x[row * columns + column]) - mean) * scales[row]);
        bias += gradient;
    }
    weight_parts[part * columns + column] = weight;
    if (bias_parts) bias_parts[part * columns + column] = bias;
}

// The sum of the parts of each column.
extern "C" __global__ void __launch_bounds__(THREADS) norm_weights(const f32* sums, u64 parts, u64 columns, TYPE* result) {
    const u64 column = (u64)blockIdx.x * THREADS + threadIdx.x;
    if (column >= columns) return;
    f32 sum = 0.0f;
    for (u64 part = 0; part < parts; part++) sum += sums[part * columns + column];
    result[column] = element<TYPE>(sum);
}
