// Clusters, bulk copies and barriers in shared memory of compute capability 9.
extern "C" __global__ __cluster_dims__(2, 1, 1) void cluster(int* out) {
    __shared__ int cell;
    unsigned rank, here = (unsigned)__cvta_generic_to_shared(&cell), there;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(here), "r"(rank ^ 1));
    asm volatile("st.shared::cluster.u32 [%0], %1;" ::"r"(there), "r"(rank) : "memory");
    asm volatile("barrier.cluster.arrive.release.aligned;\n\tbarrier.cluster.wait.acquire.aligned;" ::: "memory");
    out[blockIdx.x] = cell;
}

extern "C" __global__ void bulk(const float* in, float* out, int n) {
    extern __shared__ __align__(128) float tile[];
    __shared__ unsigned long long barrier;
    unsigned b = (unsigned)__cvta_generic_to_shared(&barrier), t = (unsigned)__cvta_generic_to_shared(tile);
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(b));
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(b), "r"(n * 4));
        asm volatile(
            "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(t),
            "l"(in), "r"(n * 4), "r"(b)
            : "memory");
    }
    asm volatile(
        "{\n\t.reg .pred P;\n\tWAIT:\n\tmbarrier.try_wait.parity.shared::cta.b64 P, [%0], 0;\n\t@P bra DONE;\n\t"
        "bra WAIT;\n\tDONE:\n\t}" ::"r"(b)
        : "memory");
    out[threadIdx.x] = tile[threadIdx.x];
    asm volatile("griddepcontrol.wait;");
}
