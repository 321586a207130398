/* Launches from libraries that are loaded and unloaded; the first argument says which way, the others are their files. */
#include "driver_api.h"

#include <dlfcn.h>

typedef int (*run_function)(handle, address, handle);

static handle function, one, two;
static address blocks[3];

/* A launch by a library, and one on another stream that nothing orders after it. */
static void *launches(const char *file, address p, int waits) {
    void *library = dlopen(file, RTLD_NOW);
    if (!library) {
        puts(dlerror());
        exit(3);
    }
    run_function run = (run_function)dlsym(library, "run");
    OK(run(function, p, one));
    OK(launch(function, p, 64, two));
    if (waits) OK(cuCtxSynchronize());
    return library;
}

int main(int count, char **words) {
    (void)count;
    begin();
    function = add_one();
    OK(cuStreamCreate(&one, 1));
    OK(cuStreamCreate(&two, 1));
    for (int i = 0; i < 3; i++) {
        OK(cuMemAlloc_v2(&blocks[i], 256));
        OK(cuMemsetD8_v2(blocks[i], 0, 256));
    }
    OK(cuCtxSynchronize());
    if (!strcmp(words[1], "told at once")) {
        dlclose(launches(words[2], blocks[0], 1));
        dlclose(launches(words[3], blocks[1], 1));
    } else if (!strcmp(words[1], "told at the end")) {
        dlclose(launches(words[2], blocks[0], 0));
        launches(words[3], blocks[1], 0);
        OK(cuCtxSynchronize());
    } else if (!strcmp(words[1], "after a finding")) {
        OK(launch(function, blocks[2], 64, one));
        OK(launch(function, blocks[2], 64, two));
        OK(cuCtxSynchronize());
        launches(words[2], blocks[0], 1);
    }
    return 0;
}
