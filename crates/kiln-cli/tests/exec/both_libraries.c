/* A program that loads the libraries by itself, under all their names; the first argument says in which order. */
#include "driver_api.h"

#include <dlfcn.h>

typedef int (*count_of)(int *);

static void *loaded(const char *name) {
    void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) fprintf(stderr, "%s\n", dlerror());
    TRUE(library != NULL);
    return library;
}

/* The number of devices, by the library under a name. */
static int devices(const char *name) {
    int count = -1;
    count_of ask = (count_of)dlsym(loaded(name), "cuDeviceGetCount");
    TRUE(ask != NULL);
    OK(ask(&count));
    return count;
}

static void management(void) {
    int (*begin_it)(void), count = -1;
    void *library = loaded("libnvidia-ml.so.1");
    begin_it = (int (*)(void))dlsym(library, "nvmlInit_v2");
    count_of ask = (count_of)dlsym(library, "nvmlDeviceGetCount_v2");
    TRUE(begin_it != NULL && ask != NULL);
    OK(begin_it());
    OK(ask(&count));
    TRUE(count == 1);
}

int main(int count, char **words) {
    const char *which = count > 1 ? words[1] : "";
    address p;
    if (!strcmp(which, "management first")) management();
    handle function = (begin(), add_one());
    if (!strcmp(which, "driver first")) management();
    /* What was initialised under one name is under the other. */
    TRUE(devices("libcuda.so.1") == 1 && devices("libcuda.so") == 1);
    TRUE(dlsym(loaded("libcuda.so"), "cuMemAlloc_v2") == dlsym(loaded("libcuda.so.1"), "cuMemAlloc_v2"));
    OK(cuMemAlloc_v2(&p, 256));
    OK(cuMemsetD8_v2(p, 0, 256));
    OK(launch(function, p, 64, NULL));
    OK(cuCtxSynchronize());
    return 0;
}
