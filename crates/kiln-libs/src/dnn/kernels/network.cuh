// What the kernels of networks share: elements of 16 and 32 bits that are computed with as f32, and sums over a group of threads.
//
// A row belongs to a warp, or to a block where it is long. Which elements a thread adds, and in which order, depends on the length of the row alone.

typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef float f32;

#define LANES 32
#define ALL_LANES 0xffffffffu
#define THREADS 256

struct f16 { u16 bits; };
struct bf16 { u16 bits; };

__device__ __forceinline__ f32 number(f32 value) { return value; }
__device__ __forceinline__ f32 number(f16 value) {
    f32 result;
    asm("cvt.f32.f16 %0, %1;" : "=f"(result) : "h"(value.bits));
    return result;
}
__device__ __forceinline__ f32 number(bf16 value) { return __uint_as_float((u32)value.bits << 16); }

// The nearest element, and of two the even one.
template <class T> __device__ __forceinline__ T element(f32 value);
template <> __device__ __forceinline__ f32 element<f32>(f32 value) { return value; }
template <> __device__ __forceinline__ f16 element<f16>(f32 value) {
    f16 result;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(result.bits) : "f"(value));
    return result;
}
template <> __device__ __forceinline__ bf16 element<bf16>(f32 value) {
    const u32 bits = __float_as_uint(value);
    bf16 result;
    result.bits = value != value ? 0x7fff : (u16)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
    return result;
}

// The row of a thread's group, and the thread's place in the group.
template <u32 GROUP> __device__ __forceinline__ u64 group_row() {
    return (u64)blockIdx.x * (THREADS / GROUP) + threadIdx.x / GROUP;
}
template <u32 GROUP> __device__ __forceinline__ u32 group_lane() { return threadIdx.x % GROUP; }

// The sum over a group, which each of its threads gets. A block calls it with all of its threads.
template <u32 GROUP> __device__ __forceinline__ f32 group_sum(f32 value) {
#pragma unroll
    for (u32 step = LANES / 2; step > 0; step /= 2) value += __shfl_xor_sync(ALL_LANES, value, step);
    if (GROUP == LANES) return value;
    __shared__ f32 warps[THREADS / LANES];
    // Values of the sum before may still be read.
    __syncthreads();
    if (threadIdx.x % LANES == 0) warps[threadIdx.x / LANES] = value;
    __syncthreads();
    f32 sum = warps[0];
#pragma unroll
    for (u32 w = 1; w < THREADS / LANES; w++) sum += warps[w];
    return sum;
}
