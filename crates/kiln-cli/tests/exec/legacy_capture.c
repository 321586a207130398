/* The legacy stream and the whole context while a stream captures; codes are those of cuda.h and the programming guide. */
#include "driver_api.h"

enum { UNSUPPORTED = 900, INVALIDATED = 901, IMPLICIT = 906 };
#define LEGACY ((handle)1)

static handle blocking, other, event, function;
static address p;

/* The use of the legacy stream with a number. */
static int use(int which) {
    unsigned words[64] = {0};
    switch (which) {
    case 0: return launch(function, p, 64, NULL);
    case 1: return cuMemcpyHtoD_v2(p, words, 256);
    case 2: return cuMemcpyDtoH_v2(words, p, 256);
    case 3: return cuMemcpy(p, p + 128, 128);
    case 4: return cuMemsetD8_v2(p, 0, 256);
    case 5: return cuMemsetD8Async(p, 0, 256, LEGACY);
    case 6: return cuEventRecord(event, NULL);
    case 7: return cuStreamWaitEvent(NULL, event, 0);
    case 8: return cuStreamSynchronize(NULL);
    case 9: return cuStreamQuery(LEGACY);
    case 10: return cuMemcpyHtoDAsync_v2(p, words, 256, NULL);
    default: return -1;
    }
}

int main(void) {
    handle graph;
    int which, mode, status;
    begin();
    function = add_one();
    OK(cuStreamCreate(&blocking, 0));
    OK(cuStreamCreate(&other, 1));
    OK(cuEventCreate(&event, 2));
    OK(cuMemAlloc_v2(&p, 256));
    OK(cuMemsetD8_v2(p, 0, 256));
    OK(cuCtxSynchronize());
    for (mode = 0; mode < 3; mode++) {
        for (which = 0; use(which) != -1; which++) {
            OK(cuCtxSynchronize());
            OK(cuStreamBeginCapture_v2(blocking, mode));
            OK(launch(function, p, 64, blocking));
            WANT(IMPLICIT, cuStreamIsCapturing(NULL, &status));
            OK(cuStreamIsCapturing(blocking, &status));
            TRUE(status == 1);
            WANT(IMPLICIT, use(which));
            OK(cuStreamIsCapturing(blocking, &status));
            TRUE(status == 2);
            /* Not before the capture is ended. */
            WANT(IMPLICIT, use(which));
            WANT(INVALIDATED, launch(function, p, 64, blocking));
            WANT(INVALIDATED, cuStreamEndCapture(blocking, &graph));
            TRUE(graph == NULL);
            OK(cuStreamIsCapturing(NULL, &status));
            TRUE(status == 0);
            OK(use(which));
            /* A stream that does not block has nothing to do with it. */
            if (mode == 2) {
                OK(cuStreamBeginCapture_v2(other, mode));
                OK(use(which));
                OK(cuStreamIsCapturing(NULL, &status));
                TRUE(status == 0);
                OK(cuStreamEndCapture(other, &graph));
                OK(cuGraphDestroy(graph));
            }
        }
        TRUE(which == 11);
        /* The context stands for all of its streams. */
        OK(cuStreamBeginCapture_v2(other, mode));
        WANT(UNSUPPORTED, cuCtxSynchronize());
        WANT(INVALIDATED, cuStreamEndCapture(other, &graph));
        OK(cuCtxSynchronize());
    }
    return 0;
}
