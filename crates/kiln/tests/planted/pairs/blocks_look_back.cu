// A scan that looks back: a block publishes its own sum and then the sum up to it, and a reader of the first state takes the second value.
// launch: grid 6 block 1
// args: inout u32 6; inout u32 6; inout u32 6; out u32 6

extern "C" __global__ void bug_blocks_look_back(unsigned* state, unsigned* own, unsigned* upto, unsigned* y) {
    unsigned b = blockIdx.x, sum = b + 1;
    own[b] = sum;
    __threadfence();
    atomicExch(state + b, 1);
    for (int at = (int)b - 1; at >= 0; at--) {
        unsigned found;
        while ((found = atomicAdd(state + at, 0)) == 0) {}
        __threadfence();
        sum += found == 2 ? upto[at] : own[at];
        y[at] = upto[at]; // expect: race
        if (found == 2) break;
    }
    upto[b] = sum; // expect: race
    __threadfence();
    atomicExch(state + b, 2);
}

extern "C" __global__ void fixed_blocks_look_back(unsigned* state, unsigned* own, unsigned* upto, unsigned* y) {
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
    y[b] = sum;
    __threadfence();
    atomicExch(state + b, 2);
}
