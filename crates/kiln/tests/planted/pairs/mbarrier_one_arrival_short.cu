// An mbarrier object that expects one arrival more than the block makes: no thread gets past the wait.
// launch: grid 1 block 64
// args: out u32 64

static __device__ unsigned start(unsigned long long* object, unsigned count) {
    unsigned at = __cvta_generic_to_shared(object);
    if (threadIdx.x == 0) asm volatile("mbarrier.init.shared.b64 [%0], %1;" :: "r"(at), "r"(count) : "memory");
    __syncthreads();
    return at;
}

static __device__ bool arrive_and_test(unsigned at, bool arrives) {
    unsigned done;
    if (arrives) asm volatile("{ .reg .b64 s; mbarrier.arrive.shared.b64 s, [%0]; }" :: "r"(at) : "memory");
    asm volatile("{ .reg .pred p; mbarrier.test_wait.parity.shared.b64 p, [%1], 0; selp.u32 %0, 1, 0, p; }" : "=r"(done) : "r"(at) : "memory"); // expect: deadlock
    return done;
}

extern "C" __global__ void bug_mbarrier_one_arrival_short(unsigned* y) {
    __shared__ unsigned long long object;
    unsigned at = start(&object, blockDim.x + 1);
    for (bool first = true; !arrive_and_test(at, first); first = false) {}
    y[threadIdx.x] = 1;
}

extern "C" __global__ void fixed_mbarrier_one_arrival_short(unsigned* y) {
    __shared__ unsigned long long object;
    unsigned at = start(&object, blockDim.x);
    for (bool first = true; !arrive_and_test(at, first); first = false) {}
    y[threadIdx.x] = 1;
}
