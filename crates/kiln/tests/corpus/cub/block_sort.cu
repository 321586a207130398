// Kernels over CUB's block-wide radix and merge sorts: keys, pairs, both directions, striped results, some bits.
#include <cub/block/block_merge_sort.cuh>
#include <cub/block/block_radix_sort.cuh>

constexpr int THREADS = 128;
constexpr int ITEMS = 4;

enum Kind { KEYS, DESCENDING, STRIPED, BITS };

template <typename T, Kind KIND> __device__ void radix(const T *in, T *out) {
    using Sort = cub::BlockRadixSort<T, THREADS, ITEMS>;
    __shared__ typename Sort::TempStorage storage;
    T items[ITEMS];
    int first = (blockIdx.x * THREADS + threadIdx.x) * ITEMS;
    for (int i = 0; i < ITEMS; i++) items[i] = in[first + i];
    if (KIND == KEYS) Sort(storage).Sort(items);
    if (KIND == DESCENDING) Sort(storage).SortDescending(items);
    if (KIND == STRIPED) Sort(storage).SortBlockedToStriped(items);
    if (KIND == BITS) Sort(storage).Sort(items, 2, 6);
    for (int i = 0; i < ITEMS; i++) out[first + i] = items[i];
}

template <typename T> __device__ void radix_pairs(const T *in, T *out, int *places) {
    using Sort = cub::BlockRadixSort<T, THREADS, ITEMS, int>;
    __shared__ typename Sort::TempStorage storage;
    T items[ITEMS];
    int values[ITEMS], first = (blockIdx.x * THREADS + threadIdx.x) * ITEMS;
    for (int i = 0; i < ITEMS; i++) { items[i] = in[first + i]; values[i] = first + i; }
    Sort(storage).Sort(items, values);
    for (int i = 0; i < ITEMS; i++) { out[first + i] = items[i]; places[first + i] = values[i]; }
}

struct Less {
    template <typename T> __device__ bool operator()(const T &a, const T &b) const { return a < b; }
};

template <typename T> __device__ void merge(const T *in, T *out) {
    using Sort = cub::BlockMergeSort<T, THREADS, ITEMS>;
    __shared__ typename Sort::TempStorage storage;
    T items[ITEMS];
    int first = (blockIdx.x * THREADS + threadIdx.x) * ITEMS;
    for (int i = 0; i < ITEMS; i++) items[i] = in[first + i];
    Sort(storage).Sort(items, Less());
    for (int i = 0; i < ITEMS; i++) out[first + i] = items[i];
}

#define KERNELS(T) \
    extern "C" __global__ void radix_keys_##T(const T *in, T *out) { radix<T, KEYS>(in, out); } \
    extern "C" __global__ void radix_descending_##T(const T *in, T *out) { radix<T, DESCENDING>(in, out); } \
    extern "C" __global__ void radix_striped_##T(const T *in, T *out) { radix<T, STRIPED>(in, out); } \
    extern "C" __global__ void radix_bits_##T(const T *in, T *out) { radix<T, BITS>(in, out); } \
    extern "C" __global__ void radix_pairs_##T(const T *in, T *out, int *places) { radix_pairs<T>(in, out, places); } \
    extern "C" __global__ void merge_sort_##T(const T *in, T *out) { merge<T>(in, out); }

KERNELS(int)
KERNELS(unsigned)
KERNELS(float)
KERNELS(double)
KERNELS(short)
