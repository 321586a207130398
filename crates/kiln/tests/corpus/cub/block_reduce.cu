// Kernels over CUB's block-wide reductions: each algorithm, several types and operators.
#include <cub/block/block_reduce.cuh>

constexpr int THREADS = 128;
constexpr int ITEMS = 4;

struct Largest {
    template <typename T> __device__ T operator()(const T &a, const T &b) const { return b > a ? b : a; }
};

template <typename T, cub::BlockReduceAlgorithm ALGORITHM> __device__ void sum(const T *in, T *out) {
    using Reduce = cub::BlockReduce<T, THREADS, ALGORITHM>;
    __shared__ typename Reduce::TempStorage storage;
    T items[ITEMS];
    for (int i = 0; i < ITEMS; i++) items[i] = in[(blockIdx.x * THREADS + threadIdx.x) * ITEMS + i];
    T total = Reduce(storage).Sum(items);
    if (threadIdx.x == 0) out[blockIdx.x] = total;
}

template <typename T, cub::BlockReduceAlgorithm ALGORITHM> __device__ void largest_of_some(const T *in, T *out, int valid) {
    using Reduce = cub::BlockReduce<T, THREADS, ALGORITHM>;
    __shared__ typename Reduce::TempStorage storage;
    T item = threadIdx.x < valid ? in[blockIdx.x * THREADS + threadIdx.x] : T();
    T total = Reduce(storage).Reduce(item, Largest(), valid);
    if (threadIdx.x == 0) out[blockIdx.x] = total;
}

#define KERNELS(T, ALGORITHM) \
    extern "C" __global__ void reduce_sum_##T##_##ALGORITHM(const T *in, T *out) { sum<T, cub::BLOCK_REDUCE_##ALGORITHM>(in, out); } \
    extern "C" __global__ void reduce_largest_##T##_##ALGORITHM(const T *in, T *out, int valid) { largest_of_some<T, cub::BLOCK_REDUCE_##ALGORITHM>(in, out, valid); }
#define TYPES(ALGORITHM) KERNELS(int, ALGORITHM) KERNELS(float, ALGORITHM) KERNELS(double, ALGORITHM) KERNELS(short, ALGORITHM)

TYPES(RAKING)
TYPES(RAKING_COMMUTATIVE_ONLY)
TYPES(WARP_REDUCTIONS)
