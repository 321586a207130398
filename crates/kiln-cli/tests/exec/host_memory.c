/* What a program sees without a wait, and what it asks about code. The first argument says which.
 *
 * fills: memory of the host, filled by calls that return when it is done.  versions: functions by the versions of the header's typedefs.
 * constants: how much constant memory a kernel's module has.  printed: what kernels print, in the order of the waits.
 * staged: copies by two threads on a stream for which another thread waits.
 * unmapped launch, unmapped copy, unmapped fill, unmapped part: registered memory that the program unmaps and then uses. */
#include "driver_api.h"

#include <pthread.h>
#include <sys/mman.h>

enum { N = 64, CONST_SIZE_BYTES = 2 };

static void fills(void) {
    unsigned *words;
    address managed;
    OK(cuMemAllocHost_v2((void **)&words, N * 4));
    for (unsigned round = 1; round < 4; round++) {
        OK(cuMemsetD32_v2((address)(size_t)words, round, N));
        for (int i = 0; i < N; i++) TRUE(words[i] == round);
        OK(cuMemsetD8_v2((address)(size_t)words, (unsigned char)(round + 10), N));
        TRUE(((unsigned char *)words)[N - 1] == round + 10);
        OK(cuMemsetD2D16_v2((address)(size_t)words, 64, (unsigned short)(round + 20), 4, 3));
        TRUE(((unsigned short *)words)[64 + 3] == round + 20);
    }
    OK(cuMemAllocManaged(&managed, N * 4, 1));
    OK(cuMemsetD32_v2(managed, 9, N));
    TRUE(((unsigned *)(size_t)managed)[N - 1] == 9);
}

static void versions(void) {
    const struct { const char *name; int version; } asked[] = {
        {"cuLaunchKernelEx", 11060}, {"cuOccupancyMaxActiveClusters", 11070}, {"cuOccupancyMaxPotentialClusterSize", 11070},
        {"cuMemBatchDecompressAsync", 12060}, {"cuGreenCtxGetId", 12090}, {"cuLaunchKernel", 4000}, {"cuMemAllocAsync", 11020},
    };
    for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) {
        void *function = NULL;
        int status = -1;
        OK(cuGetProcAddress_v2(asked[i].name, &function, asked[i].version, 0, &status));
        if (!function || status) fprintf(stderr, "%s of %d: %d\n", asked[i].name, asked[i].version, status);
    }
}

static void constants(void) {
    const char *text = ".version 8.0\n.target sm_80\n.address_size 64\n"
                       ".const .align 4 .b8 table[80];\n.const .align 4 .u32 one = 1;\n.global .align 4 .u32 other;\n"
                       ".visible .entry add(.param .u64 p)\n{\nret;\n}\n";
    handle module, function;
    int bytes = -1;
    OK(cuModuleLoadData(&module, text));
    OK(cuModuleGetFunction(&function, module, "add"));
    OK(cuFuncGetAttribute(&bytes, CONST_SIZE_BYTES, function));
    TRUE(bytes == 84);
}

static void printed(void) {
    const char *text = ".version 8.0\n.target sm_80\n.address_size 64\n"
                       ".extern .func (.param .b32 out) vprintf(.param .b64 text, .param .b64 values);\n"
                       ".global .align 1 .b8 words[8] = {110, 32, 37, 100, 10, 0, 0, 0};\n"
                       ".visible .entry tell(.param .u32 n)\n{\n.local .align 8 .b8 packed[8];\n.reg .b32 %r<2>;\n.reg .b64 %d<4>;\n"
                       ".param .b64 given;\n.param .b64 values;\n.param .b32 out;\n"
                       "ld.param.u32 %r1, [n];\nst.local.u32 [packed], %r1;\nmov.u64 %d1, packed;\ncvta.local.u64 %d1, %d1;\n"
                       "mov.u64 %d2, words;\ncvta.global.u64 %d2, %d2;\nst.param.b64 [given], %d2;\nst.param.b64 [values], %d1;\n"
                       "call (out), vprintf, (given, values);\nret;\n}\n";
    handle module, function;
    OK(cuModuleLoadData(&module, text));
    OK(cuModuleGetFunction(&function, module, "tell"));
    for (unsigned round = 0; round < 3; round++) {
        void *parameters[] = {&round};
        OK(cuLaunchKernel(function, 1, 1, 1, 2, 1, 1, 0, NULL, parameters, NULL));
        OK(cuCtxSynchronize());
        printf("round %u\n", round);
        fflush(stdout);
    }
}

enum { COPIES = 400 };
static handle shared_stream, shared_context;

/* Copies from memory that the library has to stage. */
static void *copies(void *to) {
    unsigned from[N];
    OK(cuCtxSetCurrent(shared_context));
    for (unsigned i = 0; i < COPIES; i++) {
        memset(from, (int)i, sizeof from);
        OK(cuMemcpyHtoDAsync_v2((address)(size_t)to, from, sizeof from, shared_stream));
    }
    return NULL;
}

/* One thread waits for the stream that others queue copies on. */
static void staged(void) {
    pthread_t threads[2];
    address p;
    OK(cuCtxGetCurrent(&shared_context));
    OK(cuStreamCreate(&shared_stream, 1));
    OK(cuMemAlloc_v2(&p, 4 * N));
    for (int i = 0; i < 2; i++) TRUE(pthread_create(&threads[i], NULL, copies, (void *)(size_t)p) == 0);
    for (unsigned i = 0; i < COPIES; i++) OK(cuStreamSynchronize(shared_stream));
    for (int i = 0; i < 2; i++) TRUE(pthread_join(threads[i], NULL) == 0);
    OK(cuCtxSynchronize());
    OK(cuMemFree_v2(p));
}

/* Registered memory, of which the program unmaps all or the last page before a launch, a copy or a fill uses it. */
static void unmapped(const char *how) {
    enum { PAGE = 4096, PAGES = 4 };
    address p, q;
    handle stream, function = add_one();
    char *pages = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    TRUE(pages != MAP_FAILED);
    memset(pages, 0, PAGES * PAGE);
    OK(cuStreamCreate(&stream, 1));
    OK(cuMemAlloc_v2(&q, PAGES * PAGE));
    OK(cuMemHostRegister_v2(pages, PAGES * PAGE, 2));
    OK(cuMemHostGetDevicePointer_v2(&p, pages, 0));
    OK(launch(function, p, 64, stream));
    OK(cuStreamSynchronize(stream));
    TRUE(((unsigned *)pages)[0] == 1);
    if (!strcmp(how, "unmapped part")) TRUE(munmap(pages + (PAGES - 1) * PAGE, PAGE) == 0);
    else TRUE(munmap(pages, PAGES * PAGE) == 0);
    if (!strcmp(how, "unmapped copy")) cuMemcpyHtoDAsync_v2(q, pages, PAGES * PAGE, stream);
    else if (!strcmp(how, "unmapped fill")) cuMemsetD32Async(p, 1, PAGES * PAGE / 4, stream);
    else OK(launch(function, !strcmp(how, "unmapped part") ? p + (PAGES - 1) * PAGE : p, 64, stream));
    WANT(700, cuStreamSynchronize(stream));
    WANT(700, cuMemHostUnregister(pages));
}

int main(int count, char **words) {
    const char *which = count > 1 ? words[1] : "";
    begin();
    if (!strcmp(which, "fills")) fills();
    if (!strcmp(which, "versions")) versions();
    if (!strcmp(which, "constants")) constants();
    if (!strcmp(which, "printed")) printed();
    if (!strcmp(which, "staged")) staged();
    if (!strncmp(which, "unmapped", 8)) unmapped(which);
    return 0;
}
