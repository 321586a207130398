// The first thread ends an mbarrier object that others may still ask whether its phase is complete.
// launch: grid 1 block 64
// args: out u32 64

static __device__ unsigned start(unsigned long long* object) {
    unsigned at = __cvta_generic_to_shared(object);
    if (threadIdx.x == 0) asm volatile("mbarrier.init.shared.b64 [%0], 64;" :: "r"(at) : "memory");
    __syncthreads();
    asm volatile("{ .reg .b64 s; mbarrier.arrive.shared.b64 s, [%0]; }" :: "r"(at) : "memory"); // expect: race
    return at;
}

static __device__ bool is_complete(unsigned at) {
    unsigned done;
    asm volatile("{ .reg .pred p; mbarrier.test_wait.parity.shared.b64 p, [%1], 0; selp.u32 %0, 1, 0, p; }" : "=r"(done) : "r"(at) : "memory"); // expect: race
    return done;
}

static __device__ void end(unsigned at) {
    if (threadIdx.x == 0) asm volatile("mbarrier.inval.shared.b64 [%0];" :: "r"(at) : "memory"); // expect: race
}

extern "C" __global__ void bug_mbarrier_ended_early(unsigned* y) {
    __shared__ unsigned long long object;
    unsigned at = start(&object);
    while (!is_complete(at)) {}
    end(at);
    y[threadIdx.x] = 1;
}

extern "C" __global__ void fixed_mbarrier_ended_early(unsigned* y) {
    __shared__ unsigned long long object;
    unsigned at = start(&object);
    while (!is_complete(at)) {}
    __syncthreads();
    end(at);
    y[threadIdx.x] = 1;
}
