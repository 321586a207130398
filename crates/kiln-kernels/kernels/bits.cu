// nvrtc: --gpu-architecture=compute_80
// Bit operations.

extern "C" __global__ void bit_counts(const unsigned long long* in, unsigned* out, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned long long v = in[i];
    unsigned w = (unsigned)v, *o = out + i * 10;
    o[0] = __popc(w); o[1] = __popcll(v); o[2] = __clz(w); o[3] = __clzll(v); o[4] = __ffs(w); o[5] = __ffsll(v);
    o[6] = __brev(w); o[7] = (unsigned)(__brevll(v) >> 32);
    unsigned top, shift;
    asm("bfind.u32 %0, %1;" : "=r"(top) : "r"(w));
    asm("bfind.shiftamt.s32 %0, %1;" : "=r"(shift) : "r"(w));
    o[8] = top; o[9] = shift;
}

extern "C" __global__ void bit_fields(const unsigned* a, const unsigned* b, unsigned* out, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned x = a[i], y = b[i], r, *o = out + i * 12;
    asm("bfe.u32 %0, %1, %2, %3;" : "=r"(r) : "r"(x), "r"(y & 0x3f), "r"(y >> 8 & 0x3f)); o[0] = r;
    asm("bfe.s32 %0, %1, %2, %3;" : "=r"(r) : "r"(x), "r"(y & 0x3f), "r"(y >> 8 & 0x3f)); o[1] = r;
    asm("bfi.b32 %0, %1, %2, %3, %4;" : "=r"(r) : "r"(x), "r"(y), "r"(y & 0x3f), "r"(y >> 8 & 0x3f)); o[2] = r;
    asm("lop3.b32 %0, %1, %2, %3, 0x6a;" : "=r"(r) : "r"(x), "r"(y), "r"(x + y)); o[3] = r;
    asm("prmt.b32 %0, %1, %2, %3;" : "=r"(r) : "r"(x), "r"(y), "r"(y)); o[4] = r;
    o[5] = __funnelshift_l(x, y, y >> 3);
    o[6] = __funnelshift_rc(x, y, y >> 5 & 0x3f);
    o[7] = x << (y & 0x3f);
    asm("shr.s32 %0, %1, %2;" : "=r"(r) : "r"(x), "r"(y & 0x3f)); o[8] = r;
    asm("fns.b32 %0, %1, %2, %3;" : "=r"(r) : "r"(x), "r"(y & 31), "r"((int)(y >> 28) - 8)); o[9] = r;
    asm("bmsk.clamp.b32 %0, %1, %2;" : "=r"(r) : "r"(y & 31), "r"(y >> 5 & 31)); o[10] = r;
    asm("szext.clamp.s32 %0, %1, %2;" : "=r"(r) : "r"(x), "r"(y & 31)); o[11] = r;
}

extern "C" __global__ void integer_products(const int* a, const int* b, int* out, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int x = a[i], y = b[i], *o = out + i * 12, r;
    o[0] = __mulhi(x, y); o[1] = (int)__umulhi((unsigned)x, (unsigned)y); o[2] = __mul24(x, y); o[3] = (int)__umul24(x, y);
    o[4] = (int)__sad(x, y, 7u); o[5] = (int)__usad((unsigned)x, (unsigned)y, 9u); o[6] = __hadd(x, y); o[7] = __rhadd(x, y);
    o[8] = __dp4a(x, y, 5); o[9] = (int)__dp4a((unsigned)x, (unsigned)y, 5u); o[10] = __dp2a_lo(x, y, 3);
    asm("add.sat.s32 %0, %1, %2;" : "=r"(r) : "r"(x), "r"(y)); o[11] = r;
}

extern "C" __global__ void division_by_zero(const int* a, const int* zero, int* out, long long* wide, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int x = a[i], z = zero[i], *o = out + i * 4;
    long long v = (long long)x << 20, w = z;
    asm("div.s32 %0, %1, %2;" : "=r"(o[0]) : "r"(x), "r"(z));
    asm("rem.s32 %0, %1, %2;" : "=r"(o[1]) : "r"(x), "r"(z));
    asm("div.u32 %0, %1, %2;" : "=r"(o[2]) : "r"(x), "r"(z));
    asm("rem.u32 %0, %1, %2;" : "=r"(o[3]) : "r"(x), "r"(z));
    asm("div.s64 %0, %1, %2;" : "=l"(wide[i * 2]) : "l"(v), "l"(w));
    asm("rem.u64 %0, %1, %2;" : "=l"(wide[i * 2 + 1]) : "l"(v), "l"(w));
}
