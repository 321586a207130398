// A queue of work: the reader of an item has no fence behind the wait.
// launch: grid 3 block 1
// args: inout u32 16; inout u32 2; inout u32 16

extern "C" __global__ void bug_blocks_work_queue_acquire(unsigned* items, unsigned* queue, unsigned* y) {
    if (blockIdx.x == 0) {
        for (unsigned i = 0; i < 12; i++) {
            items[i] = i + 1; // expect: race
            __threadfence();
            atomicExch(queue, i + 1);
        }
    } else {
        for (;;) {
            unsigned taken = atomicAdd(queue + 1, 1);
            if (taken >= 12) break;
            while (atomicAdd(queue, 0) <= taken) {}
            y[taken] = items[taken]; // expect: race
        }
    }
}

extern "C" __global__ void fixed_blocks_work_queue_acquire(unsigned* items, unsigned* queue, unsigned* y) {
    if (blockIdx.x == 0) {
        for (unsigned i = 0; i < 12; i++) {
            items[i] = i + 1;
            __threadfence();
            atomicExch(queue, i + 1);
        }
    } else {
        for (;;) {
            unsigned taken = atomicAdd(queue + 1, 1);
            if (taken >= 12) break;
            while (atomicAdd(queue, 0) <= taken) {}
            __threadfence();
            y[taken] = items[taken];
        }
    }
}
