// nvrtc: --gpu-architecture=compute_80
// What lanes do together, and apart.

extern "C" __global__ void votes(const int* in, unsigned* out) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    int v = in[i];
    unsigned all = __all_sync(0xffffffffu, v > -1000), any = __any_sync(0xffffffffu, v > 900);
    unsigned ballot = __ballot_sync(0xffffffffu, v & 1);
    unsigned same = __match_any_sync(0xffffffffu, v & 7);
    int whole;
    unsigned equal = __match_all_sync(0xffffffffu, v >> 30, &whole);
    out[i * 4] = all | any << 1 | whole << 2;
    out[i * 4 + 1] = ballot;
    out[i * 4 + 2] = same;
    out[i * 4 + 3] = equal;
}

extern "C" __global__ void shuffles(const int* in, int* out) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    int v = in[i], *o = out + i * 6;
    o[0] = __shfl_sync(0xffffffffu, v, i * 7);
    o[1] = __shfl_up_sync(0xffffffffu, v, 3);
    o[2] = __shfl_down_sync(0xffffffffu, v, 5, 16);
    o[3] = __shfl_xor_sync(0xffffffffu, v, 9);
    o[4] = __shfl_sync(0xffffffffu, v, 2, 8);
    o[5] = __shfl_up_sync(0xffffffffu, v, 1, 4);
}

// Halves of a warp shuffle among themselves, on different paths.
extern "C" __global__ void split_shuffles(const int* in, int* out) {
    unsigned i = threadIdx.x, lane = i % 32;
    int v = in[i];
    if (lane < 16) {
        v += __shfl_xor_sync(0x0000ffffu, v, 1);
        v *= 3;
    } else {
        v -= __shfl_xor_sync(0xffff0000u, v, 2);
    }
    v += __shfl_sync(0xffffffffu, v, 31 - lane);
    out[i] = v;
}

// Lanes reach one barrier of the warp from different places.
extern "C" __global__ void warp_barrier(const int* in, int* out) {
    __shared__ int s[128];
    unsigned i = threadIdx.x;
    s[i] = in[i];
    if (i & 1) {
        s[i] += 100;
        __syncwarp();
    } else {
        s[i] -= 100;
        __syncwarp();
    }
    int v = s[i ^ 1];
    __syncwarp();
    s[i] = v * 2;
    __syncwarp();
    out[i] = s[i ^ 2] + (int)(__activemask() == 0xffffffffu);
}

// Each lane takes a lock its neighbours also want.
extern "C" __global__ void spin_lock(int* lock, int* counter, int* order) {
    bool done = false;
    while (!done) {
        if (atomicCAS(lock, 0, 1) == 0) {
            __threadfence();
            int c = *(volatile int*)counter;
            *(volatile int*)counter = c + 1;
            order[blockIdx.x * blockDim.x + threadIdx.x] = c;
            __threadfence();
            atomicExch(lock, 0);
            done = true;
        }
    }
}

extern "C" __global__ void spin_lock_plain(int* lock, int* counter) {
    while (atomicCAS(lock, 0, 1) != 0) {}
    __threadfence();
    *(volatile int*)counter = *(volatile int*)counter + 1;
    __threadfence();
    atomicExch(lock, 0);
}

extern "C" __global__ void special_registers(unsigned* out) {
    unsigned i = (blockIdx.y * gridDim.x + blockIdx.x) * blockDim.x * blockDim.y + threadIdx.y * blockDim.x + threadIdx.x;
    unsigned lane, warp, lt, le, gt, ge, eq, shared;
    asm("mov.u32 %0, %%laneid;" : "=r"(lane));
    asm("mov.u32 %0, %%warpid;" : "=r"(warp));
    asm("mov.u32 %0, %%lanemask_lt;" : "=r"(lt));
    asm("mov.u32 %0, %%lanemask_le;" : "=r"(le));
    asm("mov.u32 %0, %%lanemask_gt;" : "=r"(gt));
    asm("mov.u32 %0, %%lanemask_ge;" : "=r"(ge));
    asm("mov.u32 %0, %%lanemask_eq;" : "=r"(eq));
    asm("mov.u32 %0, %%dynamic_smem_size;" : "=r"(shared));
    out[i * 4] = lane | shared << 16;
    out[i * 4 + 1] = lt ^ le;
    out[i * 4 + 2] = gt ^ ge;
    out[i * 4 + 3] = eq + (clock64() >= 0) + (warp < 32);
}
