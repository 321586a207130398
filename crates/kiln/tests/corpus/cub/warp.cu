// Kernels over CUB's warp-wide primitives, with whole and divided warps.
#include <cub/warp/warp_exchange.cuh>
#include <cub/warp/warp_load.cuh>
#include <cub/warp/warp_merge_sort.cuh>
#include <cub/warp/warp_reduce.cuh>
#include <cub/warp/warp_scan.cuh>
#include <cub/warp/warp_store.cuh>

constexpr int THREADS = 128;
constexpr int ITEMS = 4;

struct Largest {
    template <typename T> __device__ T operator()(const T &a, const T &b) const { return b > a ? b : a; }
};
struct Less {
    template <typename T> __device__ bool operator()(const T &a, const T &b) const { return a < b; }
};

template <typename T, int LANES, int KIND> __device__ void reduce(const T *in, T *out) {
    using Reduce = cub::WarpReduce<T, LANES>;
    __shared__ typename Reduce::TempStorage storage[THREADS / LANES];
    int group = threadIdx.x / LANES, at = blockIdx.x * THREADS + threadIdx.x;
    T item = in[at], result = T();
    if (KIND == 0) result = Reduce(storage[group]).Sum(item);
    if (KIND == 1) result = Reduce(storage[group]).Reduce(item, Largest());
    if (KIND == 2) result = Reduce(storage[group]).Sum(item, LANES - 1);
    if (KIND == 3) result = Reduce(storage[group]).HeadSegmentedSum(item, threadIdx.x % 5 == 0);
    if (threadIdx.x % LANES == 0) out[at / LANES] = result;
}

template <typename T, int LANES, int KIND> __device__ void scan(const T *in, T *out) {
    using Scan = cub::WarpScan<T, LANES>;
    __shared__ typename Scan::TempStorage storage[THREADS / LANES];
    int group = threadIdx.x / LANES, at = blockIdx.x * THREADS + threadIdx.x;
    T item = in[at], total = T();
    if (KIND == 0) Scan(storage[group]).InclusiveSum(item, item);
    if (KIND == 1) Scan(storage[group]).ExclusiveSum(item, item, total);
    if (KIND == 2) Scan(storage[group]).InclusiveScan(item, item, Largest());
    if (KIND == 3) item = Scan(storage[group]).Broadcast(item, 3);
    out[at] = item + total;
}

template <typename T, int LANES, int KIND> __device__ void move_items(const T *in, T *out) {
    using Exchange = cub::WarpExchange<T, ITEMS, LANES>;
    using Load = cub::WarpLoad<T, ITEMS, cub::WARP_LOAD_TRANSPOSE, LANES>;
    using Store = cub::WarpStore<T, ITEMS, cub::WARP_STORE_TRANSPOSE, LANES>;
    using Sort = cub::WarpMergeSort<T, ITEMS, LANES>;
    __shared__ union {
        typename Exchange::TempStorage exchange;
        typename Load::TempStorage load;
        typename Store::TempStorage store;
        typename Sort::TempStorage sort;
    } storage[THREADS / LANES];
    int group = threadIdx.x / LANES, first = (blockIdx.x * THREADS + group * LANES) * ITEMS;
    T items[ITEMS];
    Load(storage[group].load).Load(in + first, items);
    __syncwarp();
    if (KIND == 0) Exchange(storage[group].exchange).BlockedToStriped(items, items);
    if (KIND == 1) Exchange(storage[group].exchange).StripedToBlocked(items, items);
    if (KIND == 2) Sort(storage[group].sort).Sort(items, Less());
    __syncwarp();
    Store(storage[group].store).Store(out + first, items);
}

#define KERNEL(WHAT, T, LANES, KIND) extern "C" __global__ void warp_##WHAT##_##T##_##LANES##_##KIND(const T *in, T *out) { WHAT<T, LANES, KIND>(in, out); }
#define KINDS(WHAT, T, LANES) KERNEL(WHAT, T, LANES, 0) KERNEL(WHAT, T, LANES, 1) KERNEL(WHAT, T, LANES, 2)
#define ALL(T, LANES) KINDS(reduce, T, LANES) KERNEL(reduce, T, LANES, 3) KINDS(scan, T, LANES) KERNEL(scan, T, LANES, 3) KINDS(move_items, T, LANES)

ALL(int, 32)
ALL(int, 8)
ALL(double, 32)
ALL(double, 8)
