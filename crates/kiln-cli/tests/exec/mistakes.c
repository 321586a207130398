/* Mistakes that the simulated device finds; the first argument says which. */
#include "driver_api.h"

#include <signal.h>

int main(int count, char **words) {
    const char *which = count > 1 ? words[1] : "";
    handle one, two, function;
    address p;
    static unsigned back[64];
    begin();
    function = add_one();
    OK(cuStreamCreate(&one, 1));
    OK(cuStreamCreate(&two, 1));
    OK(cuMemAlloc_v2(&p, 256));
    OK(cuMemsetD8_v2(p, 0, 256));
    OK(cuCtxSynchronize());
    if (!strcmp(which, "bounds")) {
        OK(launch(function, p, 65, one));
        WANT(700, cuStreamSynchronize(one));
        WANT(700, cuCtxSynchronize());
    } else if (!strcmp(which, "race")) {
        OK(launch(function, p, 64, one));
        OK(launch(function, p, 64, two));
        OK(cuCtxSynchronize());
    } else if (!strcmp(which, "unwritten")) {
        address q;
        OK(cuMemAlloc_v2(&q, 256));
        OK(cuMemcpyDtoH_v2(back, q, 256));
    } else if (!strcmp(which, "peer")) {
        handle other;
        OK(cuDevicePrimaryCtxRetain(&other, 1));
        OK(cuCtxSetCurrent(other));
        OK(launch(add_one(), p, 64, NULL));
        WANT(700, cuCtxSynchronize());
    } else if (!strcmp(which, "killed")) {
        OK(launch(function, p, 64, one));
        OK(launch(function, p, 64, two));
        OK(cuCtxSynchronize());
        raise(SIGKILL);
    }
    return 0;
}
