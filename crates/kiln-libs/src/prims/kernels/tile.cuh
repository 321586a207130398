// What the kernels share: numbers, operators, loads of 16 bytes, and the prefix of a tile.
//
// The prefix of a tile is the combined value of all tiles before it. It is always combined in the same order, so that sums of floats
// are the same in every run: tiles in groups of 32, groups in sets of 32, sets one after the other. A tile publishes its value before it
// waits, and waits for tiles with smaller numbers only. Numbers are drawn in the order in which blocks start, so some tile can always go on.

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef int i32;
typedef long long i64;
typedef float f32;
typedef double f64;

#define LANES 32
#define ALL_LANES 0xffffffffu

template <class T> struct Limits;
template <> struct Limits<u8> { static __device__ u8 low() { return 0; } static __device__ u8 high() { return 255; } };
template <> struct Limits<u32> { static __device__ u32 low() { return 0; } static __device__ u32 high() { return ~0u; } };
template <> struct Limits<u64> { static __device__ u64 low() { return 0; } static __device__ u64 high() { return ~0ull; } };
template <> struct Limits<i32> { static __device__ i32 low() { return (i32)0x80000000u; } static __device__ i32 high() { return 0x7fffffff; } };
template <> struct Limits<i64> {
    static __device__ i64 low() { return (i64)0x8000000000000000ull; }
    static __device__ i64 high() { return 0x7fffffffffffffffll; }
};
template <> struct Limits<f32> {
    static __device__ f32 low() { return -__int_as_float(0x7f800000); }
    static __device__ f32 high() { return __int_as_float(0x7f800000); }
};
template <> struct Limits<f64> {
    static __device__ f64 low() { return -__longlong_as_double(0x7ff0000000000000ll); }
    static __device__ f64 high() { return __longlong_as_double(0x7ff0000000000000ll); }
};

template <class T> __device__ __forceinline__ T smaller(T a, T b) { return b < a ? b : a; }
template <class T> __device__ __forceinline__ T larger(T a, T b) { return b > a ? b : a; }
// A NaN is left out, as by Rust's `f32::min`.
template <> __device__ __forceinline__ f32 smaller(f32 a, f32 b) { return fminf(a, b); }
template <> __device__ __forceinline__ f64 smaller(f64 a, f64 b) { return fmin(a, b); }
template <> __device__ __forceinline__ f32 larger(f32 a, f32 b) { return fmaxf(a, b); }
template <> __device__ __forceinline__ f64 larger(f64 a, f64 b) { return fmax(a, b); }

// What a minimum or maximum begins with: a limit, or NaN, which is left out, so that NaN alone stay NaN.
template <class T> __device__ __forceinline__ T absent(T limit) { return limit; }
template <> __device__ __forceinline__ f32 absent(f32) { return __int_as_float(0x7fffffff); }
template <> __device__ __forceinline__ f64 absent(f64) { return __longlong_as_double(0x7fffffffffffffffll); }

// `of` combines two values, and `identity` with a value is that value. `of_nothing` is the result where there are no values.
template <class T> struct Sum {
    static __device__ __forceinline__ T identity() { return 0; }
    static __device__ __forceinline__ T of_nothing() { return 0; }
    static __device__ __forceinline__ T of(T a, T b) { return a + b; }
};
template <class T> struct Product {
    static __device__ __forceinline__ T identity() { return 1; }
    static __device__ __forceinline__ T of_nothing() { return 1; }
    static __device__ __forceinline__ T of(T a, T b) { return a * b; }
};
template <class T> struct Min {
    static __device__ __forceinline__ T identity() { return absent(Limits<T>::high()); }
    static __device__ __forceinline__ T of_nothing() { return Limits<T>::high(); }
    static __device__ __forceinline__ T of(T a, T b) { return smaller(a, b); }
};
template <class T> struct Max {
    static __device__ __forceinline__ T identity() { return absent(Limits<T>::low()); }
    static __device__ __forceinline__ T of_nothing() { return Limits<T>::low(); }
    static __device__ __forceinline__ T of(T a, T b) { return larger(a, b); }
};

// Elements of one access of 16 bytes.
template <class T> struct Wide { enum : u32 { count = 16 / sizeof(T) }; };

template <class T> __device__ __forceinline__ bool is_wide(const T* at) { return ((u64)at & 15) == 0; }

// Sixteen bytes and the elements in them.
template <class T> union WideBits {
    uint4 whole;
    T parts[Wide<T>::count];
};

template <class T> __device__ __forceinline__ void unpack_wide(uint4 whole, T* values) {
    WideBits<T> both;
    both.whole = whole;
#pragma unroll
    for (u32 e = 0; e < Wide<T>::count; e++) values[e] = both.parts[e];
}

template <class T> __device__ __forceinline__ uint4 pack_wide(const T* values) {
    WideBits<T> both;
#pragma unroll
    for (u32 e = 0; e < Wide<T>::count; e++) both.parts[e] = values[e];
    return both.whole;
}

template <class T> __device__ __forceinline__ void load_wide(const T* at, T* values) { unpack_wide(*(const uint4*)at, values); }
template <class T> __device__ __forceinline__ void store_wide(T* at, const T* values) { *(uint4*)at = pack_wide(values); }

// For what is used once: caches keep other data first.
template <class T> __device__ __forceinline__ void load_wide_once(const T* at, T* values) { unpack_wide(__ldcs((const uint4*)at), values); }
template <class T> __device__ __forceinline__ void store_wide_once(T* at, const T* values) { __stcs((uint4*)at, pack_wide(values)); }

// A word that other blocks wait for. It holds its data, so nothing else needs an order.
__device__ __forceinline__ u64 peek(const u64* at) {
    u64 word;
    asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(word) : "l"(at) : "memory");
    return word;
}
__device__ __forceinline__ void publish(u64* at, u64 word) {
    asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" : : "l"(at), "l"(word) : "memory");
}
__device__ __forceinline__ u32 peek(const u32* at) {
    u32 word;
    asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(word) : "l"(at) : "memory");
    return word;
}
__device__ __forceinline__ void publish(u32* at, u32 word) {
    asm volatile("st.relaxed.gpu.global.u32 [%0], %1;" : : "l"(at), "r"(word) : "memory");
}

// Shared memory by addresses of 32 bits. NVRTC computes pointers to it with 64, and in the sort the registers for that are not there.
__device__ __forceinline__ u32 shared_address(const void* at) { return (u32)__cvta_generic_to_shared(at); }
__device__ __forceinline__ u32 load_shared(u32 at, u32) {
    u32 word;
    asm volatile("ld.shared.u32 %0, [%1];" : "=r"(word) : "r"(at) : "memory");
    return word;
}
__device__ __forceinline__ u64 load_shared(u32 at, u64) {
    u64 word;
    asm volatile("ld.shared.u64 %0, [%1];" : "=l"(word) : "r"(at) : "memory");
    return word;
}
__device__ __forceinline__ void store_shared(u32 at, u32 word) { asm volatile("st.shared.u32 [%0], %1;" : : "r"(at), "r"(word) : "memory"); }
__device__ __forceinline__ void store_shared(u32 at, u64 word) { asm volatile("st.shared.u64 [%0], %1;" : : "r"(at), "l"(word) : "memory"); }
__device__ __forceinline__ u32 add_shared(u32 at, u32 word) {
    u32 before;
    asm volatile("atom.shared.add.u32 %0, [%1], %2;" : "=r"(before) : "r"(at), "r"(word) : "memory");
    return before;
}

// An array in shared memory, by such addresses.
template <class T> struct SharedArray {
    u32 base;
    __device__ __forceinline__ explicit SharedArray(const T* at) : base(shared_address(at)) {}
    __device__ __forceinline__ T get(u32 at) const { return load_shared(base + at * (u32)sizeof(T), T()); }
    __device__ __forceinline__ void set(u32 at, T value) const { store_shared(base + at * (u32)sizeof(T), value); }
    __device__ __forceinline__ T add(u32 at, T value) const { return add_shared(base + at * (u32)sizeof(T), value); }
};

// A value in words of 64 bits, each of which has 32 bits of it and a mark that it is there.
template <class T> struct Slot {
    enum : u32 { words = sizeof(T) / 4 };
    static __device__ __forceinline__ void put(u64* at, T value) {
        union { T value; u32 words[Slot<T>::words]; } both;
        both.value = value;
#pragma unroll
        for (u32 w = 0; w < words; w++) publish(at + w, (u64)both.words[w] | 1ull << 32);
    }
    static __device__ __forceinline__ T wait(const u64* at) {
        union { T value; u32 words[Slot<T>::words]; } both;
#pragma unroll
        for (u32 w = 0; w < words; w++) {
            u64 word;
            // A pause leaves the memory system to the tiles that this one waits for.
            while ((word = peek(at + w)) >> 32 == 0) __nanosleep(100);
            both.words[w] = (u32)word;
        }
        return both.value;
    }
};

// All lanes combined, in lane 0's order; every lane gets the result.
template <class T, class Op> __device__ __forceinline__ T combine_lanes(T value) {
#pragma unroll
    for (u32 step = LANES / 2; step > 0; step /= 2) value = Op::of(value, __shfl_down_sync(ALL_LANES, value, step));
    return __shfl_sync(ALL_LANES, value, 0);
}

// The state of a launch whose tiles wait for each other: zeros, a counter first.
template <class T, class Op> struct Tiles {
    u64* tiles;
    u64* groups;
    u64* sets;

    __device__ __forceinline__ Tiles(u64* state, u32 count) {
        tiles = state + 1;
        groups = tiles + (u64)count * Slot<T>::words;
        sets = groups + (u64)(count / 32 + 1) * Slot<T>::words;
    }

    // The number of this block's tile. Every thread of the block calls it.
    static __device__ __forceinline__ u32 draw(u64* state) {
        __shared__ u32 drawn;
        if (threadIdx.x == 0) drawn = atomicAdd((u32*)state, 1u);
        __syncthreads();
        return drawn;
    }

    // The combined value of `first` and all tiles before this one. One warp of the block calls it.
    __device__ __forceinline__ T prefix(u32 tile, T own, T first) const {
        const u32 words = Slot<T>::words, lane = threadIdx.x % LANES;
        const u32 group = tile / 32, set = group / 32;
        if (lane == 0) Slot<T>::put(tiles + (u64)tile * words, own);
        T value = lane < tile % 32 ? Slot<T>::wait(tiles + (u64)(group * 32 + lane) * words) : Op::identity();
        const T in_group = combine_lanes<T, Op>(value);
        const bool ends_group = tile % 32 == 31, ends_set = ends_group && group % 32 == 31;
        const T whole_group = Op::of(in_group, own);
        if (ends_group && lane == 0) Slot<T>::put(groups + (u64)group * words, whole_group);
        value = lane < group % 32 ? Slot<T>::wait(groups + (u64)(set * 32 + lane) * words) : Op::identity();
        const T in_set = combine_lanes<T, Op>(value);
        const T before = set == 0 ? first : Slot<T>::wait(sets + (u64)set * words);
        if (ends_set && lane == 0) Slot<T>::put(sets + (u64)(set + 1) * words, Op::of(before, Op::of(in_set, whole_group)));
        return Op::of(before, Op::of(in_set, in_group));
    }
};

// The bits of an element as an unsigned number in ascending order. Floats are ordered as by Rust's `total_cmp`.
__device__ __forceinline__ u32 ordered(u32 value) { return value; }
__device__ __forceinline__ u64 ordered(u64 value) { return value; }
__device__ __forceinline__ u32 ordered(i32 value) { return (u32)value ^ 0x80000000u; }
__device__ __forceinline__ u64 ordered(i64 value) { return (u64)value ^ 0x8000000000000000ull; }
__device__ __forceinline__ u32 ordered(f32 value) {
    const i32 bits = __float_as_int(value);
    return (u32)bits ^ ((u32)(bits >> 31) | 0x80000000u);
}
__device__ __forceinline__ u64 ordered(f64 value) {
    const i64 bits = __double_as_longlong(value);
    return (u64)bits ^ ((u64)(bits >> 63) | 0x8000000000000000ull);
}
