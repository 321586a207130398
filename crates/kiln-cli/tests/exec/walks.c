/* Launches from one line, from many lines, by one function for many callers, and of several threads; the first argument says which, the second how often. */
#include "driver_api.h"

#include <pthread.h>

static handle function, context;
static address p;
static unsigned times;

static void one(void) {
    for (unsigned i = 0; i < times; i++) {
        OK(launch(function, p, 64, NULL));
        if (i % 100 == 99) OK(cuCtxSynchronize());
    }
}

#define LAUNCH OK(launch(function, p, 64, NULL));
#define TEN(WHAT) WHAT WHAT WHAT WHAT WHAT WHAT WHAT WHAT WHAT WHAT

static void forty(void) {
    for (unsigned i = 0; i < times; i++) {
        TEN(LAUNCH) TEN(LAUNCH) TEN(LAUNCH) TEN(LAUNCH)
        OK(cuCtxSynchronize());
    }
}

static __attribute__((noinline)) void helper(void) { OK(launch(function, p, 64, NULL)); }

#define HELP helper();

static void callers(void) {
    for (unsigned i = 0; i < times; i++) {
        TEN(HELP) TEN(HELP) TEN(HELP) TEN(HELP)
        OK(cuCtxSynchronize());
    }
}

/* Another order in each round. */
static void orders(void) {
    unsigned random = 1;
    for (unsigned i = 0; i < times; i++) {
        random = random * 1664525 + 1013904223;
        switch (random >> 30) {
        case 0: LAUNCH break;
        case 1: LAUNCH break;
        case 2: HELP break;
        default: LAUNCH HELP
        }
        if (i % 100 == 99) OK(cuCtxSynchronize());
    }
}

static void *of_thread(void *data) {
    (void)data;
    OK(cuCtxSetCurrent(context));
    one();
    return NULL;
}

static void threads(void) {
    pthread_t all[4];
    for (int i = 0; i < 4; i++) TRUE(pthread_create(&all[i], NULL, of_thread, NULL) == 0);
    for (int i = 0; i < 4; i++) TRUE(pthread_join(all[i], NULL) == 0);
}

int main(int count, char **words) {
    const char *which = count > 1 ? words[1] : "";
    times = count > 2 ? (unsigned)atoi(words[2]) : 1;
    context = begin();
    function = add_one();
    /* Memory that counts as written, without a fill. */
    OK(cuMemAllocManaged(&p, 256, 1));
    if (!strcmp(which, "one")) one();
    else if (!strcmp(which, "forty")) forty();
    else if (!strcmp(which, "callers")) callers();
    else if (!strcmp(which, "orders")) orders();
    else if (!strcmp(which, "threads")) threads();
    else return 1;
    OK(cuCtxSynchronize());
    return 0;
}
