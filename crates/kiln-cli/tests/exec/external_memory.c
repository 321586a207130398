/* Memory of a file as memory of another interface: buffers are parts of it, and stay when it is destroyed. */
#include "driver_api.h"

#include "sharing.h"

enum { BYTES = 2 << 20, N = 64 };

static unsigned back[N];

int main(int count, char **arguments) {
    handle memory;
    unsigned long long physical;
    struct physical what = {1, 1, 1, 0, NULL, {0}};
    struct external_buffer all = {.bytes = BYTES}, part = {.offset = 4096, .bytes = 4 * N};
    address first, second;
    int file;
    begin();
    handle function = add_one();
    OK(cuMemCreate(&physical, BYTES, &what, 0));
    OK(cuMemExportToShareableHandle(&file, physical, 1, 0));
    struct external_memory of = {.kind = OPAQUE_FILE, .of.file = file, .bytes = BYTES};
    OK(cuImportExternalMemory(&memory, &of));
    OK(cuExternalMemoryGetMappedBuffer(&first, memory, &all));
    OK(cuExternalMemoryGetMappedBuffer(&second, memory, &part));
    OK(cuDestroyExternalMemory(memory));
    OK(cuMemRelease(physical));
    OK(cuMemsetD32_v2(first + 4096, 7, N));
    OK(launch(function, second, N, NULL));
    OK(cuMemcpyDtoH_v2(back, first + 4096, sizeof back));
    TRUE(back[0] == 8 && back[N - 1] == 8);
    WANT(1, cuMemcpyDtoH_v2(back, second + 4 * N - 4, 8));
    OK(cuMemFree_v2(first));
    WANT(1, cuMemcpyDtoH_v2(back, first, 4));
    OK(cuMemcpyDtoH_v2(back, second, 4));
    TRUE(back[0] == 8);
    if (count > 1 && !strcmp(arguments[1], "outside")) {
        /* The mapping goes on behind the buffer, and another one is there before it. */
        OK(launch(function, first, N, NULL));
        TRUE(cuCtxSynchronize() != 0);
        return 0;
    }
    OK(cuMemFree_v2(second));
    OK(cuCtxSynchronize());
    return 0;
}
