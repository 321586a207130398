// A block that does not get a lock after some tries goes on without it.
// launch: grid 4 block 1
// args: inout u32 1; inout u32 1

extern "C" __global__ void bug_blocks_lock_gives_up(unsigned* lock, unsigned* total) {
    for (int i = 0; i < 8; i++) {
        if (atomicCAS(lock, 0, 1) == 0) break;
    }
    __threadfence();
    *total += 1; // expect: race
    __threadfence();
    atomicExch(lock, 0);
}

extern "C" __global__ void fixed_blocks_lock_gives_up(unsigned* lock, unsigned* total) {
    bool is_mine = false;
    for (int i = 0; i < 8; i++) {
        if (atomicCAS(lock, 0, 1) == 0) {
            is_mine = true;
            break;
        }
    }
    if (!is_mine) return;
    __threadfence();
    *total += 1;
    __threadfence();
    atomicExch(lock, 0);
}
