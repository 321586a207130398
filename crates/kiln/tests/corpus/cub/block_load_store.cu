// Kernels over CUB's block-wide loads, stores and exchanges: each algorithm.
#include <cub/block/block_exchange.cuh>
#include <cub/block/block_load.cuh>
#include <cub/block/block_store.cuh>

constexpr int THREADS = 128;
constexpr int ITEMS = 4;

template <typename T, cub::BlockLoadAlgorithm LOAD, cub::BlockStoreAlgorithm STORE> __device__ void copy(const T *in, T *out, int valid) {
    using Load = cub::BlockLoad<T, THREADS, ITEMS, LOAD>;
    using Store = cub::BlockStore<T, THREADS, ITEMS, STORE>;
    __shared__ union {
        typename Load::TempStorage load;
        typename Store::TempStorage store;
    } storage;
    T items[ITEMS];
    int first = blockIdx.x * THREADS * ITEMS;
    if (valid) Load(storage.load).Load(in + first, items, valid, T());
    else Load(storage.load).Load(in + first, items);
    __syncthreads();
    for (int i = 0; i < ITEMS; i++) items[i] += T(1);
    if (valid) Store(storage.store).Store(out + first, items, valid);
    else Store(storage.store).Store(out + first, items);
}

#define COPIES(T, KIND) \
    extern "C" __global__ void copy_##T##_##KIND(const T *in, T *out) { copy<T, cub::BLOCK_LOAD_##KIND, cub::BLOCK_STORE_##KIND>(in, out, 0); } \
    extern "C" __global__ void copy_some_##T##_##KIND(const T *in, T *out, int valid) { copy<T, cub::BLOCK_LOAD_##KIND, cub::BLOCK_STORE_##KIND>(in, out, valid); }
#define KINDS(T) COPIES(T, DIRECT) COPIES(T, STRIPED) COPIES(T, VECTORIZE) COPIES(T, TRANSPOSE) COPIES(T, WARP_TRANSPOSE) COPIES(T, WARP_TRANSPOSE_TIMESLICED)

KINDS(int)
KINDS(double)
KINDS(short)

template <typename T, int KIND, bool SLICED> __device__ void exchange(const T *in, T *out) {
    using Exchange = cub::BlockExchange<T, THREADS, ITEMS, SLICED>;
    __shared__ typename Exchange::TempStorage storage;
    T items[ITEMS];
    int ranks[ITEMS], first = (blockIdx.x * THREADS + threadIdx.x) * ITEMS;
    for (int i = 0; i < ITEMS; i++) { items[i] = in[first + i]; ranks[i] = (threadIdx.x * ITEMS + i) * 5 % (THREADS * ITEMS); }
    if (KIND == 0) Exchange(storage).BlockedToStriped(items, items);
    if (KIND == 1) Exchange(storage).StripedToBlocked(items, items);
    if (KIND == 2) Exchange(storage).BlockedToWarpStriped(items, items);
    if (KIND == 3) Exchange(storage).WarpStripedToBlocked(items, items);
    if (KIND == 4) Exchange(storage).ScatterToBlocked(items, items, ranks);
    if (KIND == 5) Exchange(storage).ScatterToStriped(items, items, ranks);
    for (int i = 0; i < ITEMS; i++) out[first + i] = items[i];
}

#define EXCHANGES(T, KIND) \
    extern "C" __global__ void exchange_##T##_##KIND(const T *in, T *out) { exchange<T, KIND, false>(in, out); } \
    extern "C" __global__ void exchange_sliced_##T##_##KIND(const T *in, T *out) { exchange<T, KIND, true>(in, out); }
#define ALL(T) EXCHANGES(T, 0) EXCHANGES(T, 1) EXCHANGES(T, 2) EXCHANGES(T, 3) EXCHANGES(T, 4) EXCHANGES(T, 5)

ALL(int)
ALL(double)
