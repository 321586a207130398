// A block stops waiting after some tries, and reads although the flag is not set.
// launch: grid 2 block 1
// args: inout u32 1; inout u32 1; inout u32 1

extern "C" __global__ void bug_blocks_wait_gives_up(unsigned* data, unsigned* flag, unsigned* y) {
    if (blockIdx.x == 0) {
        *data = 5; // expect: race
        __threadfence();
        atomicExch(flag, 1);
    } else {
        for (int tries = 0; tries < 100 && atomicAdd(flag, 0) == 0; tries++) {}
        __threadfence();
        *y = *data; // expect: race
    }
}

extern "C" __global__ void fixed_blocks_wait_gives_up(unsigned* data, unsigned* flag, unsigned* y) {
    if (blockIdx.x == 0) {
        *data = 5;
        __threadfence();
        atomicExch(flag, 1);
    } else {
        unsigned set = 0;
        for (int tries = 0; tries < 100 && !(set = atomicAdd(flag, 0)); tries++) {}
        __threadfence();
        if (set) *y = *data;
    }
}
