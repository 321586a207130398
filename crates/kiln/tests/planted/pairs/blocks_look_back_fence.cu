// A scan that looks back: the sum up to a block is published without a fence between the sum and the state.
// launch: grid 6 block 1
// args: inout u32 6; inout u32 6; inout u32 6; out u32 6

extern "C" __global__ void bug_blocks_look_back_fence(unsigned* state, unsigned* own, unsigned* upto, unsigned* y) {
    unsigned b = blockIdx.x, sum = b + 1;
    own[b] = sum;
    __threadfence();
    atomicExch(state + b, 1);
    for (int at = (int)b - 1; at >= 0; at--) {
        unsigned found;
        while ((found = atomicAdd(state + at, 0)) == 0) {}
        __threadfence();
        sum += found == 2 ? upto[at] : own[at]; // expect: race
        if (found == 2) break;
    }
    upto[b] = sum; // expect: race
    atomicExch(state + b, 2);
    y[b] = sum;
}

extern "C" __global__ void fixed_blocks_look_back_fence(unsigned* state, unsigned* own, unsigned* upto, unsigned* y) {
    unsigned b = blockIdx.x, sum = b + 1;
    own[b] = sum;
    __threadfence();
    atomicExch(state + b, 1);
    for (int at = (int)b - 1; at >= 0; at--) {
        unsigned found;
        while ((found = atomicAdd(state + at, 0)) == 0) {}
        __threadfence();
        sum += found == 2 ? upto[at] : own[at];
        if (found == 2) break;
    }
    upto[b] = sum;
    __threadfence();
    atomicExch(state + b, 2);
    y[b] = sum;
}
