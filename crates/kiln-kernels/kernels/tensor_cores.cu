// nvrtc: --gpu-architecture=compute_80
// Programs on the tensor cores: products of matrices, and attention.

typedef unsigned u32;

__device__ __forceinline__ u32 shared_address(const void* pointer) { return (u32)__cvta_generic_to_shared(pointer); }

// Copies 16 bytes to shared memory; zeros, if they lie outside of the matrix.
__device__ __forceinline__ void copy16(void* to, const void* from, bool inside) {
    u32 bytes = inside ? 16 : 0;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(to)), "l"(from), "r"(bytes) : "memory");
}

__device__ __forceinline__ void commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }

template <int Groups>
__device__ __forceinline__ void wait() { asm volatile("cp.async.wait_group %0;" ::"n"(Groups) : "memory"); }

__device__ __forceinline__ void load4(u32 (&to)[4], const void* row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3]) : "r"(shared_address(row)) : "memory");
}

__device__ __forceinline__ void load2(u32 (&to)[2], const void* row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];" : "=r"(to[0]), "=r"(to[1]) : "r"(shared_address(row)) : "memory");
}

__device__ __forceinline__ void load2_transposed(u32 (&to)[2], const void* row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];" : "=r"(to[0]), "=r"(to[1]) : "r"(shared_address(row)) : "memory");
}

#define MULTIPLY_ADD(types, letter)                                                                                       \
    asm volatile("mma.sync.aligned." types " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"             \
                 : "+" letter(d[0]), "+" letter(d[1]), "+" letter(d[2]), "+" letter(d[3])                                 \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]))

// A type of elements: every product takes 16 rows and 8 columns of 32 bytes.
struct Half {
    typedef float Sum;
    static __device__ __forceinline__ void multiply_add(float (&d)[4], u32 (&a)[4], u32 (&b)[2]) { MULTIPLY_ADD("m16n8k16.row.col.f32.f16.f16.f32", "f"); }
};
struct Brain {
    typedef float Sum;
    static __device__ __forceinline__ void multiply_add(float (&d)[4], u32 (&a)[4], u32 (&b)[2]) { MULTIPLY_ADD("m16n8k16.row.col.f32.bf16.bf16.f32", "f"); }
};
struct Tensor32 {
    typedef float Sum;
    static __device__ __forceinline__ u32 rounded(u32 x) {
        u32 y;
        asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(y) : "f"(__uint_as_float(x)));
        return y;
    }
    static __device__ __forceinline__ void multiply_add(float (&d)[4], u32 (&from_a)[4], u32 (&from_b)[2]) {
        u32 a[4] = {rounded(from_a[0]), rounded(from_a[1]), rounded(from_a[2]), rounded(from_a[3])};
        u32 b[2] = {rounded(from_b[0]), rounded(from_b[1])};
        MULTIPLY_ADD("m16n8k8.row.col.f32.tf32.tf32.f32", "f");
    }
};
struct Byte {
    typedef int Sum;
    static __device__ __forceinline__ void multiply_add(int (&d)[4], u32 (&a)[4], u32 (&b)[2]) { MULTIPLY_ADD("m16n8k32.row.col.s32.s8.s8.s32", "r"); }
};

const int TILE = 64, STEP_BYTES = 64, PITCH = STEP_BYTES + 16;

// One step of a tile: 64 rows of 64 bytes, by 128 threads.
__device__ __forceinline__ void fetch(char (&tile)[TILE * PITCH], const char* matrix, u32 first, u32 rows, u32 step, u32 row_bytes) {
#pragma unroll 1
    for (u32 chunk = threadIdx.x; chunk < TILE * STEP_BYTES / 16; chunk += 128) {
        u32 row = chunk / 4, at = step * STEP_BYTES + chunk % 4 * 16;
        bool inside = first + row < rows && at < row_bytes;
        copy16(&tile[row * PITCH + chunk % 4 * 16], matrix + (inside ? (size_t)(first + row) * row_bytes + at : 0), inside);
    }
}

// C = A * B with m rows and n columns: the rows of A and the columns of B lie one behind the other and have `row_bytes` bytes, a multiple of 16. A block of four
// warps makes 64 rows and 64 columns; while a step is multiplied, the next one is copied.
template <typename T>
__device__ __forceinline__ void product(const char* a, const char* b, typename T::Sum* c, u32 m, u32 n, u32 row_bytes) {
    __shared__ __align__(16) char tiles_a[2][TILE * PITCH], tiles_b[2][TILE * PITCH];
    u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32, warp_row = warp / 2 * 32, warp_column = warp % 2 * 32;
    u32 first_row = blockIdx.y * TILE, first_column = blockIdx.x * TILE;
    typename T::Sum sums[2][4][4] = {};
    u32 steps = (row_bytes + STEP_BYTES - 1) / STEP_BYTES;
    fetch(tiles_a[0], a, first_row, m, 0, row_bytes);
    fetch(tiles_b[0], b, first_column, n, 0, row_bytes);
    commit();
    for (u32 step = 0; step < steps; ++step) {
        if (step + 1 < steps) {
            fetch(tiles_a[(step + 1) % 2], a, first_row, m, step + 1, row_bytes);
            fetch(tiles_b[(step + 1) % 2], b, first_column, n, step + 1, row_bytes);
        }
        commit();
        wait<1>();
        __syncthreads();
        const char* tile_a = tiles_a[step % 2];
        const char* tile_b = tiles_b[step % 2];
#pragma unroll 1
        for (u32 part = 0; part < STEP_BYTES; part += 32) {
            u32 of_a[2][4], of_b[4][2];
#pragma unroll
            for (u32 i = 0; i < 2; ++i) load4(of_a[i], tile_a + (warp_row + i * 16 + lane % 16) * PITCH + part + lane / 16 * 16);
#pragma unroll
            for (u32 j = 0; j < 4; ++j) load2(of_b[j], tile_b + (warp_column + j * 8 + lane % 8) * PITCH + part + lane / 8 % 2 * 16);
#pragma unroll
            for (u32 i = 0; i < 2; ++i)
#pragma unroll
                for (u32 j = 0; j < 4; ++j) T::multiply_add(sums[i][j], of_a[i], of_b[j]);
        }
        __syncthreads();
    }
#pragma unroll
    for (u32 i = 0; i < 2; ++i)
#pragma unroll
        for (u32 j = 0; j < 4; ++j)
#pragma unroll
            for (u32 k = 0; k < 4; ++k) {
                u32 row = first_row + warp_row + i * 16 + lane / 4 + k / 2 * 8, column = first_column + warp_column + j * 8 + lane % 4 * 2 + k % 2;
                if (row < m && column < n) c[row * n + column] = sums[i][j][k];
            }
}

extern "C" __global__ void product_f16(const char* a, const char* b, float* c, u32 m, u32 n, u32 row_bytes) { product<Half>(a, b, c, m, n, row_bytes); }
extern "C" __global__ void product_bf16(const char* a, const char* b, float* c, u32 m, u32 n, u32 row_bytes) { product<Brain>(a, b, c, m, n, row_bytes); }
extern "C" __global__ void product_tf32(const char* a, const char* b, float* c, u32 m, u32 n, u32 row_bytes) { product<Tensor32>(a, b, c, m, n, row_bytes); }
extern "C" __global__ void product_s8(const char* a, const char* b, int* c, u32 m, u32 n, u32 row_bytes) { product<Byte>(a, b, c, m, n, row_bytes); }

__device__ __forceinline__ float exp2_approximate(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

__device__ __forceinline__ u32 packed_halves(float low, float high) {
    u32 pair;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
    return pair;
}

const int WIDTH = 64, KEYS = 32, ROW = WIDTH * 2 + 16;

// Keys or values of one step: 32 rows of 64 halves, by 128 threads.
__device__ __forceinline__ void fetch_rows(char (&tile)[KEYS * ROW], const char* from, u32 first, u32 rows) {
#pragma unroll 1
    for (u32 chunk = threadIdx.x; chunk < KEYS * WIDTH * 2 / 16; chunk += 128) {
        u32 row = chunk / 8;
        bool inside = first + row < rows;
        copy16(&tile[row * ROW + chunk % 8 * 16], from + (inside ? (first + row) * WIDTH * 2 + chunk % 8 * 16 : 0), inside);
    }
}

// Attention of one head, forward, with 64 halves in each row: out = softmax(scale * Q * K^T) * V. The softmax is made while the keys pass by: the maximum of a
// row and the sum of its powers are kept, and what was summed before is scaled when the maximum grows. `scale_log2` is the scale times log2(e). A block of four
// warps makes 64 rows, a warp 16 of them. With `causal`, row i sees the keys 0 to i.
extern "C" __global__ void attention(const char* q, const char* k, const char* v, float* out, u32 rows, u32 keys, float scale_log2, u32 causal) {
    __shared__ __align__(16) char tiles_k[2][KEYS * ROW], tiles_v[2][KEYS * ROW], tile_q[64 * ROW];
    u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32, first_row = blockIdx.x * 64;
#pragma unroll 1
    for (u32 chunk = threadIdx.x; chunk < 64 * WIDTH * 2 / 16; chunk += 128) {
        u32 row = chunk / 8;
        bool inside = first_row + row < rows;
        copy16(&tile_q[row * ROW + chunk % 8 * 16], q + (inside ? (first_row + row) * WIDTH * 2 + chunk % 8 * 16 : 0), inside);
    }
    fetch_rows(tiles_k[0], k, 0, keys);
    fetch_rows(tiles_v[0], v, 0, keys);
    commit();
    u32 of_q[4][4];
    float sums[8][4] = {}, largest[2] = {-__int_as_float(0x7f800000), -__int_as_float(0x7f800000)}, totals[2] = {0.f, 0.f};
    u32 last = causal && first_row + 64 < keys ? first_row + 64 : keys, steps = (last + KEYS - 1) / KEYS;
    for (u32 step = 0; step < steps; ++step) {
        if (step + 1 < steps) {
            fetch_rows(tiles_k[(step + 1) % 2], k, (step + 1) * KEYS, keys);
            fetch_rows(tiles_v[(step + 1) % 2], v, (step + 1) * KEYS, keys);
        }
        commit();
        wait<1>();
        __syncthreads();
        if (step == 0)
#pragma unroll
            for (u32 d = 0; d < 4; ++d) load4(of_q[d], &tile_q[(warp * 16 + lane % 16) * ROW + d * 32 + lane / 16 * 16]);
        const char* tile_k = tiles_k[step % 2];
        const char* tile_v = tiles_v[step % 2];
        float scores[4][4] = {};
#pragma unroll
        for (u32 j = 0; j < 4; ++j)
#pragma unroll
            for (u32 d = 0; d < 4; ++d) {
                u32 of_k[2];
                load2(of_k, tile_k + (j * 8 + lane % 8) * ROW + d * 32 + lane / 8 % 2 * 16);
                Half::multiply_add(scores[j], of_q[d], of_k);
            }
        float above[2] = {largest[0], largest[1]};
#pragma unroll
        for (u32 j = 0; j < 4; ++j)
#pragma unroll
            for (u32 i = 0; i < 4; ++i) {
                u32 row = first_row + warp * 16 + lane / 4 + i / 2 * 8, key = step * KEYS + j * 8 + lane % 4 * 2 + i % 2;
                bool seen = key < keys && (!causal || key <= row);
                scores[j][i] = seen ? scores[j][i] * scale_log2 : -__int_as_float(0x7f800000);
                above[i / 2] = fmaxf(above[i / 2], scores[j][i]);
            }
        float scales[2];
#pragma unroll
        for (u32 h = 0; h < 2; ++h) {
            above[h] = fmaxf(above[h], __shfl_xor_sync(0xffffffffu, above[h], 1));
            above[h] = fmaxf(above[h], __shfl_xor_sync(0xffffffffu, above[h], 2));
            scales[h] = exp2_approximate(__fsub_rn(largest[h], above[h]));
            largest[h] = above[h];
            totals[h] = __fmul_rn(totals[h], scales[h]);
        }
        u32 weights[2][4];
#pragma unroll
        for (u32 j = 0; j < 4; ++j) {
#pragma unroll
            for (u32 i = 0; i < 4; ++i) {
                scores[j][i] = exp2_approximate(__fsub_rn(scores[j][i], largest[i / 2]));
                totals[i / 2] = __fadd_rn(totals[i / 2], scores[j][i]);
            }
            // The sums of one product are the left operand of the next.
            weights[j / 2][j % 2 * 2] = packed_halves(scores[j][0], scores[j][1]);
            weights[j / 2][j % 2 * 2 + 1] = packed_halves(scores[j][2], scores[j][3]);
        }
#pragma unroll
        for (u32 d = 0; d < 8; ++d) {
#pragma unroll
            for (u32 i = 0; i < 4; ++i) sums[d][i] = __fmul_rn(sums[d][i], scales[i / 2]);
#pragma unroll
            for (u32 part = 0; part < 2; ++part) {
                u32 of_v[2];
                load2_transposed(of_v, tile_v + (part * 16 + lane % 16) * ROW + d * 16);
                Half::multiply_add(sums[d], weights[part], of_v);
            }
        }
        __syncthreads();
    }
#pragma unroll
    for (u32 h = 0; h < 2; ++h) {
        totals[h] = __fadd_rn(totals[h], __shfl_xor_sync(0xffffffffu, totals[h], 1));
        totals[h] = __fadd_rn(totals[h], __shfl_xor_sync(0xffffffffu, totals[h], 2));
    }
#pragma unroll
    for (u32 d = 0; d < 8; ++d)
#pragma unroll
        for (u32 i = 0; i < 4; ++i) {
            u32 row = first_row + warp * 16 + lane / 4 + i / 2 * 8;
            if (row < rows) out[row * WIDTH + d * 8 + lane % 4 * 2 + i % 2] = __fdiv_rn(sums[d][i], totals[i / 2]);
        }
}
