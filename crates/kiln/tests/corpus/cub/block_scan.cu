// Kernels over CUB's block-wide prefix sums: each algorithm, exclusive and inclusive, with a total and with a prefix from the block before.
#include <cub/block/block_scan.cuh>

constexpr int THREADS = 128;
constexpr int ITEMS = 4;

template <typename T> struct Running {
    T total;
    __device__ T operator()(T tile) { T before = total; total += tile; return before; }
};

template <typename T, cub::BlockScanAlgorithm ALGORITHM, bool INCLUSIVE> __device__ void scan(const T *in, T *out) {
    using Scan = cub::BlockScan<T, THREADS, ALGORITHM>;
    __shared__ typename Scan::TempStorage storage;
    T items[ITEMS], total;
    int first = (blockIdx.x * THREADS + threadIdx.x) * ITEMS;
    for (int i = 0; i < ITEMS; i++) items[i] = in[first + i];
    if (INCLUSIVE) Scan(storage).InclusiveSum(items, items, total);
    else Scan(storage).ExclusiveSum(items, items, total);
    for (int i = 0; i < ITEMS; i++) out[first + i] = items[i] + (total - total);
}

template <typename T, cub::BlockScanAlgorithm ALGORITHM> __device__ void tiles(const T *in, T *out) {
    using Scan = cub::BlockScan<T, THREADS, ALGORITHM>;
    __shared__ typename Scan::TempStorage storage;
    Running<T> running{T()};
    for (int tile = 0; tile < 3; tile++) {
        int at = (blockIdx.x * 3 + tile) * THREADS + threadIdx.x;
        T item = in[at];
        Scan(storage).ExclusiveSum(item, item, running);
        __syncthreads();
        out[at] = item;
    }
}

#define KERNELS(T, ALGORITHM) \
    extern "C" __global__ void scan_inclusive_##T##_##ALGORITHM(const T *in, T *out) { scan<T, cub::BLOCK_SCAN_##ALGORITHM, true>(in, out); } \
    extern "C" __global__ void scan_exclusive_##T##_##ALGORITHM(const T *in, T *out) { scan<T, cub::BLOCK_SCAN_##ALGORITHM, false>(in, out); } \
    extern "C" __global__ void scan_tiles_##T##_##ALGORITHM(const T *in, T *out) { tiles<T, cub::BLOCK_SCAN_##ALGORITHM>(in, out); }
#define TYPES(ALGORITHM) KERNELS(int, ALGORITHM) KERNELS(float, ALGORITHM) KERNELS(double, ALGORITHM)

TYPES(RAKING)
TYPES(RAKING_MEMOIZE)
TYPES(WARP_SCANS)
