// Kernels over CUB's block-wide histograms, discontinuities, adjacent differences, shuffles and run-length decoding.
#include <cub/block/block_adjacent_difference.cuh>
#include <cub/block/block_discontinuity.cuh>
#include <cub/block/block_histogram.cuh>
#include <cub/block/block_run_length_decode.cuh>
#include <cub/block/block_shuffle.cuh>

constexpr int THREADS = 128;
constexpr int ITEMS = 4;

template <cub::BlockHistogramAlgorithm ALGORITHM> __device__ void histogram(const unsigned *in, unsigned *out) {
    using Histogram = cub::BlockHistogram<unsigned char, THREADS, ITEMS, 256, ALGORITHM>;
    __shared__ typename Histogram::TempStorage storage;
    __shared__ unsigned bins[256];
    unsigned char items[ITEMS];
    for (int i = 0; i < ITEMS; i++) items[i] = in[(blockIdx.x * THREADS + threadIdx.x) * ITEMS + i];
    Histogram(storage).Histogram(items, bins);
    __syncthreads();
    for (int bin = threadIdx.x; bin < 256; bin += THREADS) out[blockIdx.x * 256 + bin] = bins[bin];
}

extern "C" __global__ void histogram_sort(const unsigned *in, unsigned *out) { histogram<cub::BLOCK_HISTO_SORT>(in, out); }
extern "C" __global__ void histogram_atomic(const unsigned *in, unsigned *out) { histogram<cub::BLOCK_HISTO_ATOMIC>(in, out); }

struct Differs {
    template <typename T> __device__ bool operator()(const T &a, const T &b) const { return a != b; }
};
struct Minus {
    template <typename T> __device__ T operator()(const T &a, const T &b) const { return a - b; }
};

template <typename T, int KIND> __device__ void neighbours(const T *in, T *out) {
    using Flags = cub::BlockDiscontinuity<T, THREADS>;
    using Difference = cub::BlockAdjacentDifference<T, THREADS>;
    using Shuffle = cub::BlockShuffle<T, THREADS>;
    __shared__ union {
        typename Flags::TempStorage flags;
        typename Difference::TempStorage difference;
        typename Shuffle::TempStorage shuffle;
    } storage;
    T items[ITEMS];
    int heads[ITEMS] = {}, tails[ITEMS] = {}, first = (blockIdx.x * THREADS + threadIdx.x) * ITEMS;
    for (int i = 0; i < ITEMS; i++) items[i] = in[first + i];
    if (KIND == 0) Flags(storage.flags).FlagHeads(heads, items, Differs());
    if (KIND == 1) Flags(storage.flags).FlagTails(tails, items, Differs());
    if (KIND == 2) Flags(storage.flags).FlagHeadsAndTails(heads, tails, items, Differs());
    if (KIND == 3) Difference(storage.difference).SubtractLeft(items, items, Minus());
    if (KIND == 4) Difference(storage.difference).SubtractRight(items, items, Minus());
    if (KIND == 5) { T up = items[0]; Shuffle(storage.shuffle).Offset(items[0], up, 3); items[0] = up; }
    if (KIND == 6) { T up; Shuffle(storage.shuffle).Rotate(items[0], up, 5); items[0] = up; }
    if (KIND == 7) Shuffle(storage.shuffle).Up(items, items);
    if (KIND == 8) Shuffle(storage.shuffle).Down(items, items);
    for (int i = 0; i < ITEMS; i++) out[first + i] = items[i] + T(heads[i] * 2 + tails[i]);
}

#define NEIGHBOURS(T, KIND) extern "C" __global__ void neighbours_##T##_##KIND(const T *in, T *out) { neighbours<T, KIND>(in, out); }
#define ALL(T) NEIGHBOURS(T, 0) NEIGHBOURS(T, 1) NEIGHBOURS(T, 2) NEIGHBOURS(T, 3) NEIGHBOURS(T, 4) NEIGHBOURS(T, 5) NEIGHBOURS(T, 6) NEIGHBOURS(T, 7) NEIGHBOURS(T, 8)

ALL(int)
ALL(double)

extern "C" __global__ void run_length_decode(const unsigned *in, unsigned *out) {
    using Decode = cub::BlockRunLengthDecode<unsigned, THREADS, 2, ITEMS>;
    __shared__ typename Decode::TempStorage storage;
    unsigned values[2], lengths[2], decoded[ITEMS], total = 0;
    for (int i = 0; i < 2; i++) { values[i] = in[threadIdx.x * 2 + i]; lengths[i] = 1 + (threadIdx.x + i) % 3; }
    Decode decode(storage, values, lengths, total);
    for (unsigned from = 0; from < total; from += THREADS * ITEMS) {
        decode.RunLengthDecode(decoded, from);
        for (int i = 0; i < ITEMS; i++) {
            unsigned at = from + threadIdx.x * ITEMS + i;
            if (at < total) out[blockIdx.x * 1024 + at] = decoded[i];
        }
    }
}
