// `__syncwarp` names half of the lanes that exchange.
// launch: grid 1 block 32
// args: in u32 32; out u32 32

extern "C" __global__ void bug_warp_half_mask(const unsigned* x, unsigned* y) {
    __shared__ unsigned s[32];
    unsigned t = threadIdx.x;
    s[t] = x[t]; // expect: race
    if (t < 16) __syncwarp(0x0000ffff);
    else __syncwarp(0xffff0000);
    y[t] = s[31 - t]; // expect: race
}

extern "C" __global__ void fixed_warp_half_mask(const unsigned* x, unsigned* y) {
    __shared__ unsigned s[32];
    unsigned t = threadIdx.x;
    s[t] = x[t];
    if (t < 16) __syncwarp(0xffffffff);
    else __syncwarp(0xffffffff);
    y[t] = s[31 - t];
}
