/* Processes that fork, leave work in a queue, or ask for what is not there; the first argument says which. */
#include "driver_api.h"

#include <sys/wait.h>

int main(int count, char **words) {
    const char *which = count > 1 ? words[1] : "";
    handle function;
    address p;
    if (!strcmp(which, "before")) {
        /* A child that is made before the first call has a device. */
        int status, child = fork();
        begin();
        OK(cuMemAlloc_v2(&p, 256));
        if (child == 0) exit(0);
        TRUE(waitpid(child, &status, 0) == child && status == 0);
        return 0;
    }
    begin();
    function = add_one();
    OK(cuMemAlloc_v2(&p, 256));
    OK(cuMemsetD8_v2(p, 0, 256));
    OK(launch(function, p, 64, NULL));
    if (!strcmp(which, "after")) {
        int status, child = fork();
        if (child == 0) {
            WANT(3, cuCtxSynchronize());
            WANT(3, cuInit(0));
            exit(0);
        }
        TRUE(waitpid(child, &status, 0) == child && status == 0);
        OK(cuCtxSynchronize());
    } else if (!strcmp(which, "queued wrong")) {
        /* The launch writes behind the block, and the process ends without a wait. */
        OK(launch(function, p, 65, NULL));
    } else if (!strcmp(which, "table")) {
        const void *table;
        WANT(801, cuGetExportTable(&table, "0123456789abcdef"));
    } else if (!strcmp(which, "fails")) {
        return 42;
    }
    return 0;
}
