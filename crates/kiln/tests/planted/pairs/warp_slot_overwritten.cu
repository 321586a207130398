// The same between two lanes of a warp.
// launch: grid 1 block 32
// args: inout u32 1; inout u32 1; out u32 1

extern "C" __global__ void bug_warp_slot_overwritten(unsigned* slot, unsigned* flag, unsigned* y) {
    if (threadIdx.x == 0) {
        for (unsigned i = 1; i <= 2; i++) {
            *slot = i; // expect: race
            __threadfence();
            atomicExch(flag, i);
        }
    } else if (threadIdx.x == 7) {
        while (atomicAdd(flag, 0) < 1) {}
        __threadfence();
        *y = *slot; // expect: race
    }
}

extern "C" __global__ void fixed_warp_slot_overwritten(unsigned* slot, unsigned* flag, unsigned* y) {
    if (threadIdx.x == 0) {
        for (unsigned i = 1; i <= 2; i++) {
            *slot = i;
            __threadfence();
            atomicExch(flag, i);
        }
    } else if (threadIdx.x == 7) {
        while (atomicAdd(flag, 0) < 2) {}
        __threadfence();
        *y = *slot;
    }
}
