// A lock is not given back on one path.
// launch: grid 1 block 64
// args: in u32 64; inout u32 1; inout u32 1

extern "C" __global__ void bug_endless_lock(const unsigned* x, unsigned* lock, unsigned* sum) {
    bool done = false;
    while (!done) {
        if (atomicCAS(lock, 0, 1) == 0) { // expect: endless
            __threadfence();
            *(volatile unsigned*)sum += x[threadIdx.x];
            __threadfence();
            if (x[threadIdx.x] != 20) atomicExch(lock, 0);
            done = true;
        }
    }
}

extern "C" __global__ void fixed_endless_lock(const unsigned* x, unsigned* lock, unsigned* sum) {
    bool done = false;
    while (!done) {
        if (atomicCAS(lock, 0, 1) == 0) {
            __threadfence();
            *(volatile unsigned*)sum += x[threadIdx.x];
            __threadfence();
            if (true) atomicExch(lock, 0);
            done = true;
        }
    }
}
