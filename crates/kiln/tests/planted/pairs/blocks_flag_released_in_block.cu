// The flag of the last part is released with a scope that does not reach the other block; those before it are right.
// launch: grid 2 block 1
// args: inout u32 4; inout u32 1; out u32 4

extern "C" __global__ void bug_blocks_flag_released_in_block(unsigned* data, unsigned* flag, unsigned* y) {
    for (unsigned i = 0; i < 4; i++) {
        if (blockIdx.x == 0) {
            data[i] = i; // expect: race
            if (i < 3) asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(flag), "r"(i + 1) : "memory");
            else asm volatile("st.release.cta.global.u32 [%0], %1;" ::"l"(flag), "r"(i + 1) : "memory"); // expect: race
        } else {
            unsigned found;
            do asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(found) : "l"(flag) : "memory"); // expect: race
            while (found <= i);
            y[i] = data[i]; // expect: race
        }
    }
}

extern "C" __global__ void fixed_blocks_flag_released_in_block(unsigned* data, unsigned* flag, unsigned* y) {
    for (unsigned i = 0; i < 4; i++) {
        if (blockIdx.x == 0) {
            data[i] = i;
            asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(flag), "r"(i + 1) : "memory");
        } else {
            unsigned found;
            do asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(found) : "l"(flag) : "memory");
            while (found <= i);
            y[i] = data[i];
        }
    }
}
