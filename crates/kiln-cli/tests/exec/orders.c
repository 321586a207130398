/* Orders that the API promises; the first argument says which. */
#include "driver_api.h"

int cuMemcpyPeer(address to, handle to_context, address from, handle from_context, size_t bytes);

enum { WORDS = 64, BYTES = 4 * WORDS };

/* A graph with one launch of add_one, executable. */
static handle graph_of(handle function, address p, handle stream) {
    handle graph, exec;
    OK(cuStreamBeginCapture_v2(stream, 0));
    OK(launch(function, p, WORDS, stream));
    OK(cuStreamEndCapture(stream, &graph));
    OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
    OK(cuGraphDestroy(graph));
    return exec;
}

static unsigned first_word(address p) {
    unsigned words[WORDS];
    OK(cuMemcpyDtoH_v2(words, p, BYTES));
    return words[0];
}

/* Launches of executable graphs in two streams that nothing else orders. */
static void launches(const char *which) {
    handle one, two, x, y, function;
    address p;
    begin();
    function = add_one();
    OK(cuStreamCreate(&one, 1));
    OK(cuStreamCreate(&two, 1));
    OK(cuMemAlloc_v2(&p, BYTES));
    OK(cuMemsetD8_v2(p, 0, BYTES));
    OK(cuCtxSynchronize());
    x = graph_of(function, p, one);
    y = graph_of(function, p, one);
    if (!strcmp(which, "launches of one executable")) {
        OK(cuGraphLaunch(x, one));
        OK(cuGraphLaunch(x, two));
        OK(cuGraphLaunch(x, NULL));
        OK(cuGraphLaunch(x, one));
        OK(cuCtxSynchronize());
        TRUE(first_word(p) == 4);
        /* An executable that is gone, while its launches are queued. */
        OK(cuGraphLaunch(x, two));
        OK(cuGraphLaunch(x, one));
        OK(cuGraphExecDestroy(x));
        OK(cuCtxSynchronize());
        TRUE(first_word(p) == 6);
    } else if (!strcmp(which, "launches of two executables")) {
        OK(cuGraphLaunch(x, one));
        OK(cuGraphLaunch(y, two));
        OK(cuCtxSynchronize());
    } else {
        /* The launch in the second stream comes after the one in the first, and not after what follows that there. */
        OK(cuGraphLaunch(x, one));
        OK(launch(function, p, WORDS, one));
        OK(cuGraphLaunch(x, two));
        OK(cuCtxSynchronize());
    }
}

/* Copies between two devices, with the context of the first current. */
static void peers(const char *which) {
    handle context[2], function[2], stream[2][2], module;
    address p[2];
    unsigned flags;
    int device, round;
    OK(cuInit(0));
    for (device = 0; device < 2; device++) {
        OK(cuDevicePrimaryCtxRetain(&context[device], device));
        OK(cuCtxSetCurrent(context[device]));
        OK(cuModuleLoadData(&module, ADD_ONE));
        OK(cuModuleGetFunction(&function[device], module, "add_one"));
        for (flags = 0; flags < 2; flags++) OK(cuStreamCreate(&stream[device][flags], flags));
        OK(cuMemAlloc_v2(&p[device], BYTES));
        OK(cuMemsetD8_v2(p[device], 0, BYTES));
        OK(cuCtxSynchronize());
    }
    for (flags = 0; flags < 2; flags++) {
        for (round = 1; round < 4; round++) {
            /* Work of the other device before the copy and after it, on a blocking stream and on one that is not. */
            OK(cuCtxSetCurrent(context[1]));
            OK(launch(function[1], p[1], WORDS, stream[1][flags]));
            OK(cuCtxSetCurrent(context[0]));
            if (!strcmp(which, "peer"))
                OK(cuMemcpyPeer(p[0], context[0], p[1], context[1], BYTES));
            else if (!strcmp(which, "device"))
                OK(cuMemcpyDtoD_v2(p[0], p[1], BYTES));
            else
                OK(cuMemcpy(p[0], p[1], BYTES));
            OK(launch(function[0], p[0], WORDS, stream[0][flags]));
            OK(cuCtxSetCurrent(context[1]));
            OK(launch(function[1], p[1], WORDS, stream[1][!flags]));
            OK(cuCtxSynchronize());
            OK(cuCtxSetCurrent(context[0]));
            OK(cuCtxSynchronize());
            TRUE(first_word(p[0]) == 6 * flags + 2 * (unsigned)round);
        }
    }
    /* Memory that is freed with the copy queued. */
    OK(cuMemcpyPeer(p[0], context[0], p[1], context[1], BYTES));
    OK(cuMemFree_v2(p[1]));
    OK(cuCtxSynchronize());
    OK(cuMemFree_v2(p[0]));
}

int main(int count, char **words) {
    const char *which = count > 1 ? words[1] : "";
    (void)add_one;
    if (!strncmp(which, "launches", 8))
        launches(which);
    else
        peers(which);
    return 0;
}
