// Pooling of images: the greatest or the average number of each window, and gradients.
//
// TYPE: the element. A thread has one element of the result. Gradients are gathered, so that sums are made in a fixed order.

#include "network.cuh"

// Sizes of images and results, windows, and how tensors lie in memory: channels last, or first.
struct Shape {
    u32 channels, height, width, rows, columns, window_height, window_width, pad_height, pad_width, step_height, step_width, channels_last;
};

#define SHAPE_PARAMETERS \
    u32 channels, u32 height, u32 width, u32 rows, u32 columns, u32 window_height, u32 window_width, u32 pad_height, u32 pad_width, u32 step_height, \
        u32 step_width, u32 channels_last
#define SHAPE \
    const Shape shape = {channels, height, width, rows, columns, window_height, window_width, pad_height, pad_width, step_height, step_width, channels_last}

// The place of an element of a tensor with so many rows and columns.
__device__ __forceinline__ u32 place(const Shape& shape, u32 rows, u32 columns, u32 image, u32 channel, u32 row, u32 column) {
    return shape.channels_last ? ((image * rows + row) * columns + column) * shape.channels + channel
                               : ((image * shape.channels + channel) * rows + row) * columns + column;
}

// The image, channel, row and column of the element at a place.
struct Spot { u32 image, channel, row, column; };

__device__ __forceinline__ Spot spot(const Shape& shape, u32 rows, u32 columns, u32 at) {
    Spot found;
    if (shape.channels_last) {
        found.channel = at % shape.channels, at /= shape.channels;
        found.column = at % columns, at /= columns;
        found.row = at % rows, found.image = at / rows;
    } else {
        found.column = at % columns, at /= columns;
        found.row = at % rows, at /= rows;
        found.channel = at % shape.channels, found.image = at / shape.channels;
    }
    return found;
}

// Pixels of a window along one dimension: from `first` up to `last`.
struct Span { u32 first, last; };

__device__ __forceinline__ Span pixels(u32 position, u32 step, u32 pad, u32 window, u32 size) {
    const u32 begin = position * step, end = begin + window - pad;
    const Span span = {begin > pad ? begin - pad : 0, end < size ? end : size};
    return span;
}

// Windows that see a pixel along one dimension: from `first` up to `last`.
__device__ __forceinline__ Span windows(u32 pixel, u32 step, u32 pad, u32 window, u32 count) {
    const u32 begin = pixel + pad, end = begin / step + 1;
    const Span span = {begin < window ? 0 : (begin - window) / step + 1, end < count ? end : count};
    return span;
}

#define AVERAGE_ALL 1
#define AVERAGE_PIXELS 2

// How many numbers the average of a window is of.
__device__ __forceinline__ f32 divisor(const Shape& shape, u32 mode, Span high, Span wide) {
    return mode == AVERAGE_ALL ? (f32)(shape.window_height * shape.window_width) : (f32)((high.last - high.first) * (wide.last - wide.first));
}

extern "C" __global__ void __launch_bounds__(THREADS) pool_average(const TYPE* x, TYPE* y, u32 count, u32 mode, SHAPE_PARAMETERS) {
    SHAPE;
    const u32 at = blockIdx.x * THREADS + threadIdx.x;
    if (at >= count) return;
    const Spot to = spot(shape, rows, columns, at);
    const Span high = pixels(to.row, step_height, pad_height, window_height, height);
    const Span wide = pixels(to.column, step_width, pad_width, window_width, width);
    f32 sum = 0.0f;
    for (u32 row = high.first; row < high.last; row++)
        for (u32 column = wide.first; column < wide.last; column++)
            sum += number(x[place(shape, height, width, to.image, to.channel, row, column)]);
    y[at] = element<TYPE>(sum / divisor(shape, mode, high, wide));
}

// The greatest number, or its pixel: a NaN is greater than all others, and of equal ones it is the first. One of the two results is missing.
extern "C" __global__ void __launch_bounds__(THREADS) pool_max(const TYPE* x, TYPE* y, u32* chosen, u32 count, SHAPE_PARAMETERS) {
    SHAPE;
    const u32 at = blockIdx.x * THREADS + threadIdx.x;
    if (at >= count) return;
    const Spot to = spot(shape, rows, columns, at);
    const Span high = pixels(to.row, step_height, pad_height, window_height, height);
    const Span wide = pixels(to.column, step_width, pad_width, window_width, width);
    u32 best = high.first * width + wide.first;
    f32 greatest = number(x[place(shape, height, width, to.image, to.channel, high.first, wide.first)]);
    for (u32 row = high.first; row < high.last; row++)
        for (u32 column = wide.first; column < wide.last; column++) {
            const f32 value = number(x[place(shape, height, width, to.image, to.channel, row, column)]);
            if (value > greatest || (value != value && greatest == greatest)) greatest = value, best = row * width + column;
        }
    if (y) y[at] = element<TYPE>(greatest);
    if (chosen) chosen[at] = best;
}

extern "C" __global__ void __launch_bounds__(THREADS) pool_average_backward(const TYPE* dy, TYPE* dx, u32 count, u32 mode, SHAPE_PARAMETERS) {
    SHAPE;
    const u32 at = blockIdx.x * THREADS + threadIdx.x;
    if (at >= count) return;
    const Spot to = spot(shape, height, width, at);
    const Span high = windows(to.row, step_height, pad_height, window_height, rows);
    const Span wide = windows(to.column, step_width, pad_width, window_width, columns);
    f32 sum = 0.0f;
    for (u32 row = high.first; row < high.last; row++)
        for (u32 column = wide.first; column < wide.last; column++) {
            const Span seen_high = pixels(row, step_height, pad_height, window_height, height);
            const Span seen_wide = pixels(column, step_width, pad_width, window_width, width);
            const f32 gradient = number(dy[place(shape, rows, columns, to.image, to.channel, row, column)]);
            sum += gradient / divisor(shape, mode, seen_high, seen_wide);
        }
    dx[at] = element<TYPE>(sum);
}

extern "C" __global__ void __launch_bounds__(THREADS)
pool_max_backward(const TYPE* dy, const u32* chosen, TYPE* dx, u32 count, SHAPE_PARAMETERS) {
    SHAPE;
    const u32 at = blockIdx.x * THREADS + threadIdx.x;
    if (at >= count) return;
    const Spot to = spot(shape, height, width, at);
    const Span high = windows(to.row, step_height, pad_height, window_height, rows);
    const Span wide = windows(to.column, step_width, pad_width, window_width, columns);
    f32 sum = 0.0f;
    for (u32 row = high.first; row < high.last; row++)
        for (u32 column = wide.first; column < wide.last; column++) {
            const u32 window = place(shape, rows, columns, to.image, to.channel, row, column);
            if (chosen[window] == to.row * width + to.column) sum += number(dy[window]);
        }
    dx[at] = element<TYPE>(sum);
}
