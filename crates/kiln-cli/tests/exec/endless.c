/* Work that never ends, asked for; and more mistakes than are kept. The first argument says which. */
#include "driver_api.h"

static const char *SPIN =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".visible .entry spin()\n{\nagain:\nbra.uni again;\n}\n";
/* Counts to a number, with a state that is new in every round. */
static const char *COUNT =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".visible .entry count(.param .u64 last)\n{\n.reg .b64 %d<3>;\n.reg .pred %p;\n"
    "ld.param.u64 %d1, [last];\nmov.u64 %d2, 0;\nagain:\nadd.s64 %d2, %d2, 1;\n"
    "setp.lt.u64 %p, %d2, %d1;\n@%p bra again;\nret;\n}\n";

/* Counts to a number in so many threads; what the wait answers. */
static int counted(unsigned long long last, unsigned threads) {
    handle module, function;
    void *parameters[] = {&last};
    OK(cuModuleLoadData(&module, COUNT));
    OK(cuModuleGetFunction(&function, module, "count"));
    OK(cuLaunchKernel(function, 1, 1, 1, threads, 1, 1, 0, NULL, parameters, NULL));
    return cuCtxSynchronize();
}

int main(int count, char **words) {
    const char *which = count > 1 ? words[1] : "";
    handle one, two, event, module, function;
    int code = 600, i;
    begin();
    (void)add_one;
    (void)launch;
    if (!strcmp(which, "counts")) {
        WANT(702, counted(~0ull, 1));
        return 0;
    }
    if (!strcmp(which, "counts together")) {
        WANT(702, counted(~0ull, 1024));
        return 0;
    }
    if (!strcmp(which, "ends")) {
        OK(counted(10000, 1024));
        return 0;
    }
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
