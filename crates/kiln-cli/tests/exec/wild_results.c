/* Places for results, structures and texts at addresses that no process can have: a code, and no crash. */
#include "driver_api.h"

int main(void) {
    handle module, function;
    handle *const wild[] = {(handle *)1, (handle *)8, (handle *)4095, (handle *)0xdeadbeefdeadbeefULL, (handle *)(size_t)-1};
    begin();
    OK(cuModuleLoadData(&module, ADD_ONE));
    for (unsigned i = 0; i < sizeof wild / sizeof *wild; i++) {
        void *at = wild[i];
        WANT(1, cuMemAlloc_v2(at, 64));
        WANT(1, cuMemHostAlloc(at, 64, 0));
        WANT(1, cuStreamCreate(at, 0));
        WANT(1, cuEventCreate(at, 0));
        WANT(1, cuDeviceGetCount(at));
        WANT(1, cuDeviceGetName(at, 100, 0));
        WANT(1, cuModuleGetFunction(at, module, "add_one"));
        WANT(1, cuModuleGetFunction(&function, module, at));
        WANT(1, cuModuleLoadData(&module, at));
        WANT(1, cuMemcpy2D_v2(at));
        WANT(1, cuGraphCreate(at, 0));
    }
    return 0;
}
