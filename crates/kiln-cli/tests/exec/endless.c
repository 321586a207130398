/* Work that never ends, asked for; and more mistakes than are kept. The first argument says which. */
#include "driver_api.h"

static const char *SPIN =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".visible .entry spin()\n{\nagain:\nbra.uni again;\n}\n";

int main(int count, char **words) {
    const char *which = count > 1 ? words[1] : "";
    handle one, two, event, module, function;
    int code = 600, i;
    begin();
    (void)add_one;
    (void)launch;
    OK(cuStreamCreate(&one, 1));
    OK(cuStreamCreate(&two, 1));
    if (!strcmp(which, "many")) {
        for (i = 0; i < 1100; i++) {
            address p;
            OK(cuMemAlloc_v2(&p, 64));
            OK(cuMemsetD8Async(p, 0, 64, one));
            OK(cuMemsetD8Async(p, 0, 64, two));
        }
        OK(cuCtxSynchronize());
        return 0;
    }
    OK(cuEventCreate(&event, 0));
    OK(cuModuleLoadData(&module, SPIN));
    OK(cuModuleGetFunction(&function, module, "spin"));
    OK(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, one, NULL, NULL));
    OK(cuEventRecord(event, one));
    for (i = 0; i < 100000 && code == 600; i++)
        code = !strcmp(which, "event") ? cuEventQuery(event) : cuStreamQuery(one);
    WANT(702, code);
    WANT(702, cuStreamSynchronize(one));
    return 0;
}
