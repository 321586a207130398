/* Functions by the names that cuda.h replaced, where nothing else changed. */
#include "driver_api.h"

int cuCtxCreate(handle *context, unsigned flags, int device);
int cuCtxDestroy(handle context);
int cuCtxPushCurrent(handle context);
int cuCtxPopCurrent(handle *context);
int cuStreamDestroy(handle stream);
int cuEventDestroy(handle event);
int cuDevicePrimaryCtxRelease(int device);
int cuDevicePrimaryCtxReset(int device);
int cuDevicePrimaryCtxSetFlags(int device, unsigned flags);
int cuMemHostRegister(void *start, size_t bytes, unsigned flags);
int cuGraphInstantiate(handle *exec, handle graph, handle *node, char *log, size_t room);
int cuLinkCreate(unsigned count, void *keys, void *values, handle *link);
int cuLinkAddData(handle link, int kind, void *data, size_t bytes, const char *name, unsigned count, void *keys, void *values);

int main(void) {
    static char page[8192];
    handle context, popped, stream, event, graph, exec, link;
    void *code;
    size_t bytes;
    (void)add_one;
    (void)launch;
    WANT(3, cuCtxCreate(&context, 0, 0));
    OK(cuInit(0));
    OK(cuDevicePrimaryCtxSetFlags(0, 0));
    WANT(1, cuCtxCreate(NULL, 0, 0));
    OK(cuCtxCreate(&context, 0, 0));
    OK(cuCtxPopCurrent(&popped));
    TRUE(popped == context);
    OK(cuCtxPushCurrent(context));
    OK(cuStreamCreate(&stream, 1));
    OK(cuEventCreate(&event, 0));
    OK(cuEventDestroy(event));
    WANT(400, cuEventDestroy(event));
    OK(cuMemHostRegister(page, sizeof page, 0));
    OK(cuMemHostUnregister(page));
    OK(cuGraphCreate(&graph, 0));
    OK(cuGraphInstantiate(&exec, graph, NULL, NULL, 0));
    OK(cuGraphLaunch(exec, stream));
    OK(cuGraphExecDestroy(exec));
    OK(cuGraphDestroy(graph));
    OK(cuLinkCreate(0, NULL, NULL, &link));
    OK(cuLinkAddData(link, 1, (void *)ADD_ONE, strlen(ADD_ONE) + 1, "a", 0, NULL, NULL));
    OK(cuLinkComplete(link, &code, &bytes));
    OK(cuLinkDestroy(link));
    OK(cuStreamDestroy(stream));
    OK(cuCtxDestroy(context));
    OK(cuDevicePrimaryCtxRetain(&context, 0));
    OK(cuDevicePrimaryCtxRelease(0));
    OK(cuDevicePrimaryCtxReset(0));
    return 0;
}
