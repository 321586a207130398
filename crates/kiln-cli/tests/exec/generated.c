/* A launch through code whose lines say that it is not the program's own, as inlined code of packages and of a compiler's headers does. */
#include "driver_api.h"

static handle function, one, two;
static address p;

# 10 "/packages/.cargo/registry/src/index.crates.io-0/wrapper-1.0.0/src/launch.rs"
static __attribute__((noinline)) void inner(handle stream) { OK(launch(function, p, 64, stream)); }
# 20 "/usr/include/c++/12/bits/invoke.h"
static __attribute__((noinline)) void middle(handle stream) { inner(stream); __asm__ volatile(""); }
# 30 "/rustc/0123456789/library/core/src/ops/function.rs"
static __attribute__((noinline)) void outer(handle stream) { middle(stream); __asm__ volatile(""); }
# 40 "own.c"
static __attribute__((noinline)) void step(handle stream) { outer(stream); __asm__ volatile(""); }

int main(void) {
    begin();
    function = add_one();
    OK(cuStreamCreate(&one, 1));
    OK(cuStreamCreate(&two, 1));
    OK(cuMemAlloc_v2(&p, 256));
    OK(cuMemsetD8_v2(p, 0, 256));
    OK(cuCtxSynchronize());
    step(one);
    step(two);
    OK(cuCtxSynchronize());
    return 0;
}
