/* Programs that give back what they have at the very end; the first argument says where. With --leaks nothing is found. */
#include "driver_api.h"

#include <pthread.h>

static address block;
static handle module, context;
static int is_mine;

/* Gives everything back, with the calls that look at the context of the thread. */
static void give_back(void) {
    handle now;
    OK(cuCtxGetCurrent(&now));
    TRUE(now == context);
    OK(cuCtxSynchronize());
    OK(cuMemFree_v2(block));
    OK(cuModuleUnload(module));
    OK(cuDevicePrimaryCtxRelease_v2(0));
}

static void take(void) {
    handle function;
    context = begin();
    OK(cuModuleLoadData(&module, ADD_ONE));
    OK(cuModuleGetFunction(&function, module, "add_one"));
    OK(cuMemAlloc_v2(&block, 256));
    OK(cuMemsetD8_v2(block, 0, 256));
    OK(launch(function, block, 64, NULL));
}

__attribute__((destructor)) static void at_the_end(void) {
    if (is_mine) give_back();
}

static void of_key(void *value) {
    (void)value;
    give_back();
}

static void *thread(void *value) {
    pthread_key_t key;
    (void)value;
    TRUE(pthread_key_create(&key, of_key) == 0);
    TRUE(pthread_setspecific(key, &block) == 0);
    take();
    return NULL;
}

int main(int count, char **words) {
    const char *which = count > 1 ? words[1] : "";
    (void)add_one;
    if (!strcmp(which, "atexit first")) {
        atexit(give_back);
        take();
    } else if (!strcmp(which, "atexit last")) {
        take();
        atexit(give_back);
    } else if (!strcmp(which, "destructor")) {
        take();
        is_mine = 1;
    } else if (!strcmp(which, "key")) {
        pthread_t id;
        TRUE(pthread_create(&id, NULL, thread, NULL) == 0);
        TRUE(pthread_join(id, NULL) == 0);
    } else if (!strcmp(which, "deep")) {
        handle popped;
        int i;
        take();
        for (i = 0; i < 20; i++) OK(cuCtxPushCurrent_v2(context));
        for (i = 0; i < 20; i++) {
            OK(cuCtxPopCurrent_v2(&popped));
            TRUE(popped == context);
        }
        give_back();
    }
    return 0;
}
