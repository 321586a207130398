// Inline assembly: blocks with their own names, labels, predicates, carries, special registers.
extern "C" __global__ void blocks(int* out, int n) {
    int r;
    asm volatile(
        "{\n\t.reg .pred p;\n\t.reg .b32 t<3>;\n\tmov.u32 t0, %%laneid;\n\tmov.u32 t1, 0x1F;\n\t"
        "setp.lt.u32 p, t0, t1;\n\t@p bra DONE;\n\tadd.s32 t0, t0, 1;\nDONE:\n\tselp.b32 %0, t0, %1, p;\n\t}"
        : "=r"(r)
        : "r"(n));
    out[threadIdx.x] = r;
    asm volatile(
        "{\n\t.reg .pred p;\n\tsetp.eq.s32 p, %1, 0;\n\t@!p bra DONE;\n\tst.global.s32 [%0], %1;\nDONE:\n\t}" ::"l"(out),
        "r"(n)
        : "memory");
}

extern "C" __global__ void wide_add(const unsigned* a, const unsigned* b, unsigned* c) {
    unsigned x, y, z;
    asm("add.cc.u32 %0, %3, %6;\n\taddc.cc.u32 %1, %4, %7;\n\taddc.u32 %2, %5, %8;"
        : "=r"(x), "=r"(y), "=r"(z)
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(b[0]), "r"(b[1]), "r"(b[2]));
    c[0] = x;
    c[1] = y;
    c[2] = z;
}

extern "C" __global__ void specials(unsigned* out, unsigned long long* times) {
    unsigned v;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(v));
    out[0] = v;
    asm volatile("mov.u32 %0, %%lanemask_lt;" : "=r"(v));
    out[1] = v;
    asm volatile("mov.u32 %0, %%dynamic_smem_size;" : "=r"(v));
    out[2] = v;
    unsigned long long t;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
    times[0] = t;
    times[1] = clock64();
}

extern "C" __global__ void logic(unsigned* out, unsigned a, unsigned b) {
    unsigned r;
    asm("lop3.b32 %0, %1, %2, %3, 0xE8;" : "=r"(r) : "r"(a), "r"(b), "r"(out[0]));
    out[1] = r;
    asm("bfe.u32 %0, %1, 4, 8;" : "=r"(r) : "r"(a));
    out[2] = r;
    asm("prmt.b32.f4e %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(b), "r"(1u));
    out[3] = r;
    asm("vote.sync.ballot.b32 %0, 1, 0xffffffff;" : "=r"(r));
    out[4] = r;
    asm volatile("prefetch.global.L2 [%0];" ::"l"(out + 32));
    asm volatile("ld.global.L1::no_allocate.L2::128B.u32 %0, [%1];" : "=r"(r) : "l"(out + 7));
    out[5] = r;
}
