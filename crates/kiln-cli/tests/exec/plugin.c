/* A shared library that launches; it is built twice, with two names of its function and, in the second one, on other lines. */
#include <stddef.h>

#ifdef SECOND


#endif

int cuLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared,
                   void *stream, void **parameters, void **extra);

__attribute__((noinline)) int NAME(void *function, unsigned long long p, void *stream) {
    unsigned n = 64;
    void *values[] = {&p, &n};
    int code = cuLaunchKernel(function, 1, 1, 1, n, 1, 1, 0, stream, values, NULL);
    __asm__ volatile("" ::: "memory");
    return code;
}

int run(void *function, unsigned long long p, void *stream) {
    int code = NAME(function, p, stream);
    __asm__ volatile("" ::: "memory");
    return code;
}
