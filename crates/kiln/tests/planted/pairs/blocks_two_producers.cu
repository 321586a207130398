// Two blocks write a place one after the other, and a third one waits for the first of them alone.
// launch: grid 3 block 1
// args: inout u32 1; inout u32 1; out u32 1

extern "C" __global__ void bug_blocks_two_producers(unsigned* data, unsigned* turn, unsigned* y) {
    unsigned b = blockIdx.x;
    if (b < 2) {
        while (atomicAdd(turn, 0) != b) {}
        __threadfence();
        *data = b + 1; // expect: race
        __threadfence();
        atomicAdd(turn, 1);
    } else {
        while (atomicAdd(turn, 0) < 1) {}
        __threadfence();
        *y = *data; // expect: race
    }
}

extern "C" __global__ void fixed_blocks_two_producers(unsigned* data, unsigned* turn, unsigned* y) {
    unsigned b = blockIdx.x;
    if (b < 2) {
        while (atomicAdd(turn, 0) != b) {}
        __threadfence();
        *data = b + 1;
        __threadfence();
        atomicAdd(turn, 1);
    } else {
        while (atomicAdd(turn, 0) < 2) {}
        __threadfence();
        *y = *data;
    }
}
