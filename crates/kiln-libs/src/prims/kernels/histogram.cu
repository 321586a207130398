// How many elements are in each of equally wide bins.
//
// TYPE: the element. Elements outside of the bins are not counted, nor are NaN.

#include "tile.cuh"

#define THREADS 256
#define SHARED_BINS 8192

#if IS_FLOAT
// `scale` is bins / (high - low).
#define BIN_PARAMETERS TYPE low, TYPE high, f64 scale
__device__ __forceinline__ bool bin_of(TYPE value, u32 bins, BIN_PARAMETERS, u32& bin) {
    if (!(value >= low && value < high)) return false;
    const u32 found = (u32)(((f64)value - (f64)low) * scale);
    bin = found < bins ? found : bins - 1;
    return true;
}
#define BIN_ARGUMENTS low, high, scale
#else
// `width` is high - low; times the bins it fits 64 bits. It is 0 where there is a bin for each value of the type and more.
#define BIN_PARAMETERS TYPE low, u64 width
__device__ __forceinline__ bool bin_of(TYPE value, u32 bins, BIN_PARAMETERS, u32& bin) {
    if (value < low) return false;
    const u64 distance = (u64)value - (u64)low;
    if (distance >= width) return false;
    bin = width == bins ? (u32)distance : (u32)(distance * bins / width);
    return true;
}
#define BIN_ARGUMENTS low, width
#endif

// Bins in shared memory first.
extern "C" __global__ void __launch_bounds__(THREADS) histogram_shared(const TYPE* in, u64 n, u32 bins, u64* out, BIN_PARAMETERS) {
    extern __shared__ u32 own[];
    for (u32 at = threadIdx.x; at < bins; at += THREADS) own[at] = 0;
    __syncthreads();
    for (u64 at = blockIdx.x * (u64)THREADS + threadIdx.x; at < n; at += (u64)gridDim.x * THREADS) {
        u32 bin;
        if (bin_of(in[at], bins, BIN_ARGUMENTS, bin)) atomicAdd(&own[bin], 1u);
    }
    __syncthreads();
    for (u32 at = threadIdx.x; at < bins; at += THREADS)
        if (own[at] != 0) atomicAdd(&out[at], (u64)own[at]);
}

extern "C" __global__ void __launch_bounds__(THREADS) histogram_global(const TYPE* in, u64 n, u32 bins, u64* out, BIN_PARAMETERS) {
    for (u64 at = blockIdx.x * (u64)THREADS + threadIdx.x; at < n; at += (u64)gridDim.x * THREADS) {
        u32 bin;
        if (bin_of(in[at], bins, BIN_ARGUMENTS, bin)) atomicAdd(&out[bin], 1ull);
    }
}
