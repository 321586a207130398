/* What a program is told of faults that were planned, and goes on after. The first argument says which. */
#include "driver_api.h"

int main(int count, char **words) {
    const char *which = count > 1 ? words[1] : "";
    handle module;
    address p = 0, q = 0;
    begin();
    if (!strcmp(which, "memory")) {
        OK(cuMemAlloc_v2(&p, 64));
        WANT(2, cuMemAlloc_v2(&q, 64));
        TRUE(q == 0);
        OK(cuMemAlloc_v2(&q, 64));
        OK(cuMemFree_v2(q));
        OK(cuMemFree_v2(p));
    } else if (!strcmp(which, "image")) {
        WANT(200, cuModuleLoadData(&module, ADD_ONE));
        OK(cuModuleLoadData(&module, ADD_ONE));
    } else {
        int code = atoi(which);
        handle function = add_one();
        OK(cuMemAlloc_v2(&p, 256));
        OK(cuMemsetD32_v2(p, 0, 64));
        OK(launch(function, p, 64, NULL));
        OK(cuCtxSynchronize());
        OK(launch(function, p, 64, NULL));
        WANT(code, cuCtxSynchronize());
        WANT(code, cuMemAlloc_v2(&q, 64));
    }
    return 0;
}
