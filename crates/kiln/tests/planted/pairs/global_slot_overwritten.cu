// A warp writes a place again while another warp of the block, which it released before, still reads it.
// launch: grid 1 block 64
// args: inout u32 1; inout u32 1; out u32 1

extern "C" __global__ void bug_global_slot_overwritten(unsigned* slot, unsigned* flag, unsigned* y) {
    if (threadIdx.x == 0) {
        for (unsigned i = 1; i <= 2; i++) {
            *slot = i; // expect: race
            __threadfence();
            atomicExch(flag, i);
        }
    } else if (threadIdx.x == 32) {
        while (atomicAdd(flag, 0) < 1) {}
        __threadfence();
        *y = *slot; // expect: race
    }
}

extern "C" __global__ void fixed_global_slot_overwritten(unsigned* slot, unsigned* flag, unsigned* y) {
    if (threadIdx.x == 0) {
        for (unsigned i = 1; i <= 2; i++) {
            *slot = i;
            __threadfence();
            atomicExch(flag, i);
        }
    } else if (threadIdx.x == 32) {
        while (atomicAdd(flag, 0) < 2) {}
        __threadfence();
        *y = *slot;
    }
}
