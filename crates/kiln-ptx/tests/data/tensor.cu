// Instructions of the tensor cores and asynchronous copies: parsed, named, and their effects read.
extern "C" __global__ void matrix(const unsigned* a, float* c) {
    asm volatile(
        "{\n\t.reg .b32 a<8>;\n\t.reg .f32 d<8>;\n\t"
        "wmma.load.a.sync.aligned.row.m16n16k16.f16 {a0,a1,a2,a3,a4,a5,a6,a7}, [%0], 16;\n\t"
        "mov.f32 d0, 0f00000000;\n\tmov.f32 d1, d0;\n\tmov.f32 d2, d0;\n\tmov.f32 d3, d0;\n\t"
        "mov.f32 d4, d0;\n\tmov.f32 d5, d0;\n\tmov.f32 d6, d0;\n\tmov.f32 d7, d0;\n\t"
        "wmma.mma.sync.aligned.row.row.m16n16k16.f32.f32 {d0,d1,d2,d3,d4,d5,d6,d7}, {a0,a1,a2,a3,a4,a5,a6,a7}, "
        "{a0,a1,a2,a3,a4,a5,a6,a7}, {d0,d1,d2,d3,d4,d5,d6,d7};\n\t"
        "wmma.store.d.sync.aligned.row.m16n16k16.f32 [%1], {d0,d1,d2,d3,d4,d5,d6,d7}, 16;\n\t}" ::"l"(a),
        "l"(c)
        : "memory");
}

extern "C" __global__ void raw_mma(const unsigned* a, float* d) {
    float d0, d1, d2, d3;
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%10,%11,%12,%13};"
        : "=f"(d0), "=f"(d1), "=f"(d2), "=f"(d3)
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(a[4]), "r"(a[5]), "f"(0.f), "f"(0.f), "f"(0.f), "f"(0.f));
    d[0] = d0 + d1 + d2 + d3;
}

extern "C" __global__ void copies(const float4* in, float4* out) {
    __shared__ float4 tile[64];
    unsigned to = (unsigned)__cvta_generic_to_shared(&tile[threadIdx.x]);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(in + threadIdx.x));
    asm volatile("cp.async.commit_group;");
    asm volatile("cp.async.wait_group 0;");
    __syncthreads();
    out[threadIdx.x] = tile[threadIdx.x];
}
