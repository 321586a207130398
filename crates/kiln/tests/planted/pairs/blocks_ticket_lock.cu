// A ticket lock that serves the next block before it writes what it protects; a second release hides it from a block that comes late.
// launch: grid 4 block 1
// args: inout u32 2; inout u32 1; out u32 8

extern "C" __global__ void bug_blocks_ticket_lock(unsigned* tickets, unsigned* total, unsigned* y) {
    for (unsigned round = 0; round < 2; round++) {
        unsigned ticket = atomicAdd(tickets, 1);
        while (atomicAdd(tickets + 1, 0) < ticket) {}
        __threadfence();
        unsigned before = *total; // expect: race
        __threadfence();
        atomicAdd(tickets + 1, 1);
        *total = before + 1; // expect: race
        y[ticket] = before;
        __threadfence();
    }
}

extern "C" __global__ void fixed_blocks_ticket_lock(unsigned* tickets, unsigned* total, unsigned* y) {
    for (unsigned round = 0; round < 2; round++) {
        unsigned ticket = atomicAdd(tickets, 1);
        while (atomicAdd(tickets + 1, 0) < ticket) {}
        __threadfence();
        unsigned before = *total;
        *total = before + 1;
        __threadfence();
        atomicAdd(tickets + 1, 1);
        y[ticket] = before;
        __threadfence();
    }
}
