/* Modules, functions, launches, links, libraries, occupancy, entry points and faults. */
#include "answers.h"

#include <dlfcn.h>

static const char *TWO =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".visible .const .align 8 .b8 table[48];\n"
    ".visible .global .align 16 .b8 room[100];\n"
    ".global .align 4 .u32 hidden = 3;\n"
    ".visible .entry empty()\n{\nret;\n}\n"
    ".visible .entry shared(.param .u32 a, .param .u64 b, .param .align 4 .b8 c[12])\n.maxntid 256, 1, 1\n{\n"
    ".shared .align 4 .b8 fixed[512];\n.reg .pred %p<2>;\n.reg .b32 %r<4>;\n.reg .b64 %d<3>;\n"
    "mov.u32 %r1, %tid.x;\nsetp.ne.u32 %p1, %r1, 0;\n@%p1 bra out;\nld.param.u64 %d1, [b];\nld.param.u32 %r1, [a];\n"
    "mov.u32 %r2, fixed;\nst.shared.u32 [%r2], %r1;\nld.shared.u32 %r3, [%r2];\n"
    "setp.ne.u32 %p1, %r3, 123456;\n@%p1 bra out;\nst.global.u32 [%d1], %r3;\nout:\nret;\n}\n";

static handle two(void) {
    handle module = NULL;
    NEED(cuModuleLoadData(&module, TWO));
    return module;
}

void modules(void) {
    handle module = NULL, function = NULL, list[8];
    address p = 0;
    size_t n = 0;
    unsigned count = 0;
    int mode = 0;
    begin();
    CODE(cuModuleLoadData(NULL, ADD_ONE));
    CODE(cuModuleLoadData(&module, NULL));
    CODE(cuModuleLoadData(&module, ""));
    CODE(cuModuleLoadData(&module, "this is no program"));
    CODE(cuModuleLoadData(&module, ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry k() { nonsense; }\n"));
    NAMED("for a newer device", cuModuleLoadData(&module, ".version 8.8\n.target sm_120\n.address_size 64\n.visible .entry k() { ret; }\n"));
    NAMED("for a newer compiler", cuModuleLoadData(&module, ".version 99.0\n.target sm_70\n.address_size 64\n.visible .entry k() { ret; }\n"));
    CODE(cuModuleLoad(&module, "/nonexistent/file.ptx"));
    CODE(cuModuleLoad(&module, NULL));
    CODE(cuModuleLoad(NULL, "/nonexistent/file.ptx"));
    module = two();
    CODE(cuModuleGetFunction(&function, module, "empty"));
    CODE(cuModuleGetFunction(&function, module, "absent"));
    CODE(cuModuleGetFunction(&function, module, ""));
    CODE(cuModuleGetFunction(&function, module, NULL));
    CODE(cuModuleGetFunction(NULL, module, "empty"));
    CODE(cuModuleGetFunction(&function, module, "room"));
    CODE(cuModuleGetGlobal_v2(&p, &n, module, "room"));
    value("its bytes", (long long)n);
    value("its alignment", p % 16);
    CODE(cuModuleGetGlobal_v2(&p, &n, module, "table"));
    value("bytes of constants", (long long)n);
    CODE(cuModuleGetGlobal_v2(NULL, &n, module, "room"));
    CODE(cuModuleGetGlobal_v2(&p, NULL, module, "room"));
    CODE(cuModuleGetGlobal_v2(&p, &n, module, "absent"));
    CODE(cuModuleGetGlobal_v2(&p, &n, module, "empty"));
    CODE(cuModuleGetGlobal_v2(&p, &n, module, NULL));
    CODE(cuModuleGetGlobal_v2(NULL, NULL, module, "room"));
    CODE(cuModuleGetFunctionCount(&count, module));
    value("functions", count);
    CODE(cuModuleEnumerateFunctions(list, 8, module));
    CODE(cuModuleGetFunctionCount(NULL, module));
    CODE(cuModuleGetLoadingMode(&mode));
    CODE(cuModuleUnload(module));
    CODE(cuModuleUnload(NULL));
    CODE(cuModuleGetLoadingMode(NULL));
}

void unloaded_module(void) {
    handle module = NULL, function = NULL;
    begin();
    module = two();
    NEED(cuModuleUnload(module));
    CODE(cuModuleUnload(module));
    CODE(cuModuleGetFunction(&function, module, "empty"));
}

void functions(void) {
    handle module = NULL, function = NULL, empty = NULL, found = NULL;
    int number = 0;
    size_t offset = 0, size = 0;
    const char *name = NULL;
    begin();
    module = two();
    NEED(cuModuleGetFunction(&function, module, "shared"));
    NEED(cuModuleGetFunction(&empty, module, "empty"));
    for (int attribute = 0; attribute < 17; attribute++) {
        char label[32];
        snprintf(label, sizeof label, "attribute %d", attribute);
        NAMED(label, cuFuncGetAttribute(&number, attribute, function));
        /* Threads, static shared bytes, bytes of constants, dynamic shared bytes. */
        if (attribute == 0 || attribute == 1 || attribute == 8) value(label, number);
    }
    CODE(cuFuncGetAttribute(&number, 0, empty));
    value("threads without a limit", number);
    CODE(cuFuncGetAttribute(&number, 77, function));
    CODE(cuFuncGetAttribute(&number, -1, function));
    CODE(cuFuncGetAttribute(NULL, 0, function));
    CODE(cuFuncGetAttribute(&number, 0, NULL));
    CODE(cuFuncSetAttribute(empty, 8, 100000));
    CODE(cuFuncGetAttribute(&number, 8, empty));
    value("dynamic shared bytes that were set", number);
    CODE(cuFuncSetAttribute(empty, 8, 227 * 1024));
    CODE(cuFuncSetAttribute(empty, 8, 227 * 1024 + 1));
    CODE(cuFuncSetAttribute(function, 8, 227 * 1024));
    CODE(cuFuncSetAttribute(function, 8, 227 * 1024 - 512));
    CODE(cuFuncSetAttribute(empty, 8, -1));
    CODE(cuFuncSetAttribute(empty, 9, 50));
    CODE(cuFuncSetAttribute(empty, 9, 101));
    CODE(cuFuncSetAttribute(empty, 9, -1));
    CODE(cuFuncSetAttribute(empty, 9, -2));
    CODE(cuFuncSetAttribute(empty, 0, 5));
    CODE(cuFuncSetAttribute(empty, 77, 5));
    CODE(cuFuncSetAttribute(NULL, 8, 5));
    CODE(cuFuncSetCacheConfig(empty, 1));
    CODE(cuFuncSetCacheConfig(NULL, 1));
    CODE(cuFuncGetModule(&found, function));
    value("its module", found == module);
    CODE(cuFuncGetModule(NULL, function));
    CODE(cuFuncGetName(&name, function));
    words("its name", name ? name : "none");
    CODE(cuFuncGetName(NULL, function));
    CODE(cuFuncGetParamInfo(function, 0, &offset, &size));
    value("offset of the first parameter", (long long)offset);
    value("size of the first parameter", (long long)size);
    CODE(cuFuncGetParamInfo(function, 1, &offset, &size));
    value("offset of the second parameter", (long long)offset);
    value("size of the second parameter", (long long)size);
    CODE(cuFuncGetParamInfo(function, 2, &offset, &size));
    value("offset of the third parameter", (long long)offset);
    value("size of the third parameter", (long long)size);
    CODE(cuFuncGetParamInfo(function, 3, &offset, &size));
    CODE(cuFuncGetParamInfo(empty, 0, &offset, &size));
    CODE(cuFuncGetParamInfo(function, 0, NULL, &size));
    CODE(cuFuncGetParamInfo(function, 0, &offset, NULL));
}

/* One launch of a function without parameters. */
static int dims(handle f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared) {
    return cuLaunchKernel(f, gx, gy, gz, bx, by, bz, shared, NULL, NULL, NULL);
}

void launches(void) {
    handle module = NULL, empty = NULL, function = NULL, stream = NULL, add = NULL;
    address p = 0;
    unsigned word = 5, got = 0;
    begin();
    module = two();
    add = add_one();
    NEED(cuModuleGetFunction(&empty, module, "empty"));
    NEED(cuModuleGetFunction(&function, module, "shared"));
    NEED(cuStreamCreate(&stream, 1));
    NEED(cuMemAlloc_v2(&p, 4096));
    NEED(cuMemsetD32_v2(p, 41, 1024));
    NEED(cuCtxSynchronize());
    CODE(dims(empty, 1, 1, 1, 1, 1, 1, 0));
    CODE(dims(empty, 0, 1, 1, 1, 1, 1, 0));
    CODE(dims(empty, 1, 0, 1, 1, 1, 1, 0));
    CODE(dims(empty, 1, 1, 0, 1, 1, 1, 0));
    CODE(dims(empty, 1, 1, 1, 0, 1, 1, 0));
    CODE(dims(empty, 1, 1, 1, 1, 0, 1, 0));
    CODE(dims(empty, 1, 1, 1, 1, 1, 0, 0));
    CODE(dims(empty, 1, 1, 1, 1024, 1, 1, 0));
    CODE(dims(empty, 1, 1, 1, 1025, 1, 1, 0));
    CODE(dims(empty, 1, 1, 1, 1, 1024, 1, 0));
    CODE(dims(empty, 1, 1, 1, 1, 1025, 1, 0));
    CODE(dims(empty, 1, 1, 1, 1, 1, 64, 0));
    CODE(dims(empty, 1, 1, 1, 1, 1, 65, 0));
    CODE(dims(empty, 1, 1, 1, 32, 33, 1, 0));
    CODE(dims(empty, 1, 1, 1, 4, 4, 64, 0));
    CODE(dims(empty, 1, 65535, 1, 1, 1, 1, 0));
    CODE(dims(empty, 1, 65536, 1, 1, 1, 1, 0));
    CODE(dims(empty, 1, 1, 65535, 1, 1, 1, 0));
    CODE(dims(empty, 1, 1, 65536, 1, 1, 1, 0));
    CODE(dims(empty, 0x80000000u, 1, 1, 1, 1, 1, 0));
    CODE(dims(empty, 1, 1, 1, 1, 1, 1, 48 * 1024));
    CODE(dims(empty, 1, 1, 1, 1, 1, 1, 48 * 1024 + 1));
    CODE(dims(empty, 1, 1, 1, 1, 1, 1, 1 << 20));
    NEED(cuFuncSetAttribute(empty, 8, 100000));
    NAMED("more shared memory after it was asked for", dims(empty, 1, 1, 1, 1, 1, 1, 100000));
    NAMED("one byte more than was asked for", dims(empty, 1, 1, 1, 1, 1, 1, 100001));
    NAMED("no function", dims(NULL, 1, 1, 1, 1, 1, 1, 0));
    void *three[] = {&word, &p, (char[12]){0}};
    NAMED("within the declared threads", cuLaunchKernel(function, 1, 1, 1, 256, 1, 1, 0, stream, three, NULL));
    NAMED("more than the declared threads", cuLaunchKernel(function, 1, 1, 1, 257, 1, 1, 0, stream, three, NULL));
    NAMED("shared memory beside static one", cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 48 * 1024 - 512, stream, three, NULL));
    NAMED("too much beside static one", cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 48 * 1024 - 511, stream, three, NULL));
    CODE(launch(add, p, 100, stream));
    CODE(cuStreamSynchronize(stream));
    CODE(cuMemcpyDtoH_v2(&got, p, 4));
    value("one was added", got);
    /* The parameters as one buffer. */
    struct {
        address p;
        unsigned n;
    } buffer = {p, 100};
    size_t bytes = 12;
    void *extra[] = {(void *)1, &buffer, (void *)2, &bytes, NULL};
    NAMED("parameters in a buffer", cuLaunchKernel(add, 2, 1, 1, 64, 1, 1, 0, stream, NULL, extra));
    NAMED("parameters in both ways", cuLaunchKernel(add, 2, 1, 1, 64, 1, 1, 0, stream, (void *[]){&p, &word}, extra));
    CODE(cuStreamSynchronize(stream));
    CODE(cuMemcpyDtoH_v2(&got, p, 4));
    value("one was added again", got);
    CODE(cuLaunchCooperativeKernel(empty, 1, 1, 1, 32, 1, 1, 0, stream, NULL));
    CODE(cuLaunchCooperativeKernel(empty, 1 << 20, 1, 1, 1024, 1, 1, 0, stream, NULL));
    CODE(cuLaunchCooperativeKernel(empty, 1, 1, 1, 32, 1, 1, 0, NULL, NULL));
    CODE(cuCtxSynchronize());
}

void launch_attributes(void) {
    handle module = NULL, empty = NULL;
    struct launch_attribute {
        int id, pad;
        union {
            unsigned words[16];
            int cooperative;
        } is;
    } list[2];
    struct launch_config {
        unsigned gx, gy, gz, bx, by, bz, shared;
        handle stream;
        struct launch_attribute *list;
        unsigned count;
    } config;
    begin();
    module = two();
    NEED(cuModuleGetFunction(&empty, module, "empty"));
    memset(list, 0, sizeof list);
    memset(&config, 0, sizeof config);
    config.gx = config.gy = config.gz = config.by = config.bz = 1;
    config.bx = 32;
    NAMED("no attribute", cuLaunchKernelEx(&config, empty, NULL, NULL));
    NAMED("no description", cuLaunchKernelEx(NULL, empty, NULL, NULL));
    NAMED("no function", cuLaunchKernelEx(&config, NULL, NULL, NULL));
    config.count = 1;
    NAMED("a list that is not there", cuLaunchKernelEx(&config, empty, NULL, NULL));
    config.list = list;
    list[0].id = 0;
    NAMED("one to ignore", cuLaunchKernelEx(&config, empty, NULL, NULL));
    list[0].id = 2;
    list[0].is.cooperative = 1;
    NAMED("cooperative", cuLaunchKernelEx(&config, empty, NULL, NULL));
    list[0].id = 8;
    list[0].is.cooperative = -1;
    NAMED("a priority", cuLaunchKernelEx(&config, empty, NULL, NULL));
    list[0].id = 4;
    list[0].is.words[0] = 2;
    list[0].is.words[1] = list[0].is.words[2] = 1;
    NAMED("clusters that do not divide the grid", cuLaunchKernelEx(&config, empty, NULL, NULL));
    config.gx = 0;
    NAMED("no grid", cuLaunchKernelEx(&config, empty, NULL, NULL));
    CODE(cuCtxSynchronize());
}

void links(void) {
    handle link = NULL, module = NULL, function = NULL;
    void *code = NULL;
    size_t bytes = 0;
    static const char *first =
        ".version 7.0\n.target sm_70\n.address_size 64\n.extern .func (.param .b32 r) helper(.param .b32 a);\n"
        ".visible .entry main_kernel(.param .u64 p)\n{\n.reg .b32 %r<3>;\n.reg .b64 %d<2>;\nld.param.u64 %d1, [p];\n"
        "{\n.param .b32 a;\n.param .b32 r;\nst.param.b32 [a], 5;\ncall (r), helper, (a);\nld.param.b32 %r1, [r];\n}\n"
        "st.global.u32 [%d1], %r1;\nret;\n}\n";
    static const char *second =
        ".version 7.0\n.target sm_70\n.address_size 64\n.visible .func (.param .b32 r) helper(.param .b32 a)\n{\n.reg .b32 %r<3>;\n"
        "ld.param.b32 %r1, [a];\nmul.lo.s32 %r2, %r1, 9;\nst.param.b32 [r], %r2;\nret;\n}\n";
    address p = 0;
    unsigned got = 0;
    begin();
    CODE(cuLinkCreate_v2(0, NULL, NULL, NULL));
    CODE(cuLinkCreate_v2(0, NULL, NULL, &link));
    CODE(cuLinkAddData_v2(link, 1, NULL, 10, "a", 0, NULL, NULL));
    CODE(cuLinkAddData_v2(link, 1, (void *)"nonsense", 9, "a", 0, NULL, NULL));
    CODE(cuLinkDestroy(link));
    CODE(cuLinkCreate_v2(0, NULL, NULL, &link));
    CODE(cuLinkAddData_v2(link, 1, (void *)first, strlen(first) + 1, "first", 0, NULL, NULL));
    CODE(cuLinkAddData_v2(link, 1, (void *)second, strlen(second) + 1, NULL, 0, NULL, NULL));
    CODE(cuLinkAddFile_v2(link, 1, "/nonexistent/file.ptx", 0, NULL, NULL));
    CODE(cuLinkComplete(link, &code, &bytes));
    CODE(cuModuleLoadData(&module, code));
    CODE(cuModuleGetFunction(&function, module, "main_kernel"));
    CODE(cuLinkDestroy(link));
    NEED(cuMemAlloc_v2(&p, 4));
    CODE(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, (void *[]){&p}, NULL));
    CODE(cuMemcpyDtoH_v2(&got, p, 4));
    value("nine times five", got);
    CODE(cuLinkCreate_v2(0, NULL, NULL, &link));
    CODE(cuLinkAddData_v2(link, 1, (void *)first, strlen(first) + 1, "first", 0, NULL, NULL));
    NAMED("a function that is missing", cuLinkComplete(link, &code, &bytes));
    CODE(cuLinkDestroy(link));
    CODE(cuLinkDestroy(NULL));
}

void libraries(void) {
    handle library = NULL, kernel = NULL, function = NULL, module = NULL, list[4], found = NULL;
    unsigned count = 0;
    address p = 0;
    size_t n = 0;
    int number = 0;
    const char *name = NULL;
    begin();
    CODE(cuLibraryLoadData(NULL, ADD_ONE, NULL, NULL, 0, NULL, NULL, 0));
    CODE(cuLibraryLoadData(&library, NULL, NULL, NULL, 0, NULL, NULL, 0));
    CODE(cuLibraryLoadData(&library, ADD_ONE, NULL, NULL, 0, NULL, NULL, 0));
    CODE(cuLibraryGetKernel(&kernel, library, "add_one"));
    CODE(cuLibraryGetKernel(&found, library, "absent"));
    CODE(cuLibraryGetKernel(&found, library, NULL));
    CODE(cuLibraryGetKernel(NULL, library, "add_one"));
    CODE(cuLibraryGetKernelCount(&count, library));
    value("kernels", count);
    CODE(cuLibraryEnumerateKernels(list, 4, library));
    CODE(cuLibraryGetModule(&module, library));
    CODE(cuKernelGetFunction(&function, kernel));
    CODE(cuKernelGetFunction(NULL, kernel));
    CODE(cuKernelGetLibrary(&found, kernel));
    value("its library", found == library);
    CODE(cuKernelGetName(&name, kernel));
    words("its name", name ? name : "none");
    CODE(cuKernelGetAttribute(&number, 0, kernel, 0));
    CODE(cuKernelGetAttribute(&number, 77, kernel, 0));
    CODE(cuKernelGetAttribute(&number, 0, kernel, 1000));
    CODE(cuKernelSetAttribute(8, 60000, kernel, 0));
    CODE(cuKernelGetAttribute(&number, 8, kernel, 0));
    value("dynamic shared bytes", number);
    CODE(cuLibraryGetGlobal(&p, &n, library, "bias"));
    value("bytes of a variable", (long long)n);
    CODE(cuLibraryGetGlobal(&p, &n, library, "absent"));
    CODE(cuMemAlloc_v2(&p, 400));
    CODE(cuMemsetD8_v2(p, 0, 400));
    NAMED("a kernel as a function", launch(kernel, p, 100, NULL));
    NAMED("its function", launch(function, p, 100, NULL));
    CODE(cuCtxSynchronize());
    CODE(cuMemcpyDtoH_v2(&number, p, 4));
    value("two were added", number);
    CODE(cuLibraryLoadFromFile(&found, "/nonexistent/file.ptx", NULL, NULL, 0, NULL, NULL, 0));
    CODE(cuLibraryUnload(library));
    CODE(cuLibraryUnload(NULL));
}

void occupancy(void) {
    handle module = NULL, empty = NULL, function = NULL;
    int blocks = 0, grid = 0, block = 0;
    size_t bytes = 0;
    begin();
    module = two();
    NEED(cuModuleGetFunction(&empty, module, "empty"));
    NEED(cuModuleGetFunction(&function, module, "shared"));
    const int sizes[] = {32, 64, 128, 256, 512, 1024};
    for (unsigned i = 0; i < 6; i++) {
        char name[48];
        snprintf(name, sizeof name, "blocks of %d", sizes[i]);
        NAMED(name, cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, empty, sizes[i], 0));
        value(name, blocks);
    }
    CODE(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, empty, 0, 0));
    CODE(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, empty, -1, 0));
    CODE(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, empty, 2000, 0));
    value("blocks of 2000", blocks);
    CODE(cuOccupancyMaxActiveBlocksPerMultiprocessor(NULL, empty, 32, 0));
    CODE(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, NULL, 32, 0));
    CODE(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, empty, 32, 40000));
    value("with 40000 bytes", blocks);
    CODE(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, empty, 32, 300000));
    value("with 300000 bytes", blocks);
    CODE(cuOccupancyMaxPotentialBlockSize(&grid, &block, empty, NULL, 0, 0));
    value("the best block", block);
    CODE(cuOccupancyMaxPotentialBlockSize(&grid, &block, empty, NULL, 0, 200));
    value("the best block up to 200", block);
    CODE(cuOccupancyMaxPotentialBlockSize(&grid, &block, function, NULL, 0, 0));
    value("the best block of declared threads", block);
    CODE(cuOccupancyMaxPotentialBlockSize(NULL, &block, empty, NULL, 0, 0));
    CODE(cuOccupancyMaxPotentialBlockSize(&grid, NULL, empty, NULL, 0, 0));
    CODE(cuOccupancyAvailableDynamicSMemPerBlock(&bytes, empty, 2, 128));
    CODE(cuOccupancyAvailableDynamicSMemPerBlock(NULL, empty, 2, 128));
}

void entry_points(void) {
    static const struct {
        const char *name;
        int version;
        unsigned long long flags;
    } ASKED[] = {
        {"cuInit", 2000, 0},         {"cuInit", 13000, 0},       {"cuInit", 1000, 0},          {"cuMemAlloc", 2000, 0},
        {"cuMemAlloc", 3020, 0},     {"cuMemAlloc_v2", 13000, 0}, {"cuCtxCreate", 11040, 0},   {"cuCtxCreate", 13000, 0},
        {"cuStreamSynchronize", 13000, 2}, {"cuStreamSynchronize", 13000, 1}, {"cuStreamSynchronize", 13000, 3}, {"cuNothing", 13000, 0},
        {"", 13000, 0},              {"cuGetProcAddress", 13000, 0}, {"cuGetProcAddress", 11030, 0}, {"cuMemcpyHtoD", 13000, 0},
        {"cuMemcpyHtoD_v2", 2000, 0}, {"cuCtxGetDevice", 2000, 0}, {"cuCtxGetDevice", 13000, 0}, {"cuEventElapsedTime", 12080, 0},
        {"cuGraphAddNode", 12020, 0}, {"cuGraphAddNode", 11000, 0}, {"cuDeviceGetUuid", 11040, 0}, {"cuStreamGetCtx", 13000, 0},
    };
    void *function = NULL;
    int found = 77;
    NEED(cuInit(0));
    for (unsigned i = 0; i < sizeof ASKED / sizeof *ASKED; i++) {
        char name[96];
        snprintf(name, sizeof name, "%s of %d with %llu", ASKED[i].name, ASKED[i].version, ASKED[i].flags);
        function = NULL;
        found = 77;
        NAMED(name, cuGetProcAddress_v2(ASKED[i].name, &function, ASKED[i].version, ASKED[i].flags, &found));
        value(name, found);
        value(name, function != NULL);
    }
    NAMED("no room", cuGetProcAddress_v2("cuInit", NULL, 13000, 0, &found));
    NAMED("no status", cuGetProcAddress_v2("cuInit", &function, 13000, 0, NULL));
    NAMED("no status and no such function", cuGetProcAddress_v2("cuNothing", &function, 13000, 0, NULL));
    NAMED("no name", cuGetProcAddress_v2(NULL, &function, 13000, 0, &found));
}

/* The first forms of functions, with addresses and lengths of 32 bits: what they answer, and what they leave in their results. */
typedef int (*short_form)(size_t, size_t, size_t, size_t, size_t, size_t);

static unsigned results[4];

static void first_form(const char *name, size_t a, size_t b, size_t c, size_t d) {
    char label[64];
    short_form function = (short_form)dlsym(RTLD_DEFAULT, name);
    if (function == NULL) {
        words(name, "none");
        return;
    }
    NAMED(name, function(a, b, c, d, 4, 0));
    snprintf(label, sizeof label, "%s, its first result", name);
    value(label, results[0]);
    snprintf(label, sizeof label, "%s, its second result", name);
    value(label, results[2]);
}

void short_addresses(void) {
    static const char *WITHOUT_RESULTS[] = {
        "cuMemFree",     "cuMemcpyHtoD", "cuMemcpyDtoH",  "cuMemcpyDtoD",  "cuMemcpyHtoDAsync", "cuMemcpyDtoHAsync",   "cuMemcpyDtoDAsync", "cuMemsetD8",
        "cuMemsetD16",   "cuMemsetD32",  "cuMemsetD2D8",  "cuMemsetD2D16", "cuMemsetD2D32",     "cuMemcpy2D",          "cuMemcpy2DUnaligned", "cuMemcpy3D",
        "cuMemcpy2DAsync", "cuMemcpy3DAsync",
    };
    static const char *WITH_RESULTS[] = {"cuDeviceTotalMem", "cuMemGetInfo", "cuMemAlloc", "cuMemAllocPitch", "cuMemHostGetDevicePointer", "cuMemGetAddressRange"};
    handle module;
    begin();
    NEED(cuModuleLoadData(&module, ADD_ONE));
    for (unsigned i = 0; i < sizeof WITH_RESULTS / sizeof *WITH_RESULTS; i++) {
        memset(results, 0xaa, sizeof results);
        /* The second result is behind the second argument, where a function has one. */
        int has_two = strstr("cuMemGetInfo cuMemAllocPitch cuMemGetAddressRange", WITH_RESULTS[i]) != NULL;
        /* Otherwise the number of a device, or of bytes. */
        size_t second = has_two ? (size_t)&results[2] : i == 0 ? 0 : 64;
        first_form(WITH_RESULTS[i], (size_t)&results[0], second, 64, 4);
    }
    memset(results, 0xaa, sizeof results);
    first_form("cuModuleGetGlobal", (size_t)&results[0], (size_t)&results[2], (size_t)module, (size_t)"bias");
    memset(results, 0, sizeof results);
    for (unsigned i = 0; i < sizeof WITHOUT_RESULTS / sizeof *WITHOUT_RESULTS; i++) first_form(WITHOUT_RESULTS[i], 64, 64, 16, 0);
}

/* After a fault, every call of the process answers with its code. */
static void after(void) {
    handle h = NULL, current = NULL;
    address p = 0;
    size_t n = 0;
    int i = 0;
    NAMED("the wait", cuCtxSynchronize());
    NAMED("the wait again", cuCtxSynchronize());
    NAMED("memory", cuMemAlloc_v2(&p, 256));
    NAMED("free memory", cuMemGetInfo_v2(&n, &n));
    NAMED("a stream", cuStreamCreate(&h, 0));
    NAMED("an event", cuEventCreate(&h, 0));
    NAMED("a stream's query", cuStreamQuery(NULL));
    NAMED("a module", cuModuleLoadData(&h, ADD_ONE));
    NAMED("the current context", cuCtxGetCurrent(&current));
    NAMED("the number of devices", cuDeviceGetCount(&i));
    NAMED("an attribute", cuDeviceGetAttribute(&i, 1, 0));
    NAMED("the device of the context", cuCtxGetDevice(&i));
}

static void faulty(const char *body) {
    static char text[2048];
    handle module = NULL, function = NULL;
    begin();
    snprintf(text, sizeof text,
             ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry k()\n{\n.reg .b32 %%r<3>;\n.reg .b64 %%d<3>;\n%s\nret;\n}\n", body);
    NEED(cuModuleLoadData(&module, text));
    NEED(cuModuleGetFunction(&function, module, "k"));
    NAMED("the launch", cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
    after();
}

void fault_address(void) {
    faulty("mov.u64 %d1, 16;\nst.global.u32 [%d1], 1;");
}

void fault_trap(void) {
    faulty("trap;");
}

void fault_misaligned(void) {
    faulty(".global .align 8 .b8 room[16];\nmov.u64 %d1, room;\nst.global.u32 [%d1+2], 1;");
}

void fault_assert(void) {
    static const char *text =
        ".version 7.0\n.target sm_70\n.address_size 64\n"
        ".extern .func __assertfail(.param .b64 a, .param .b64 b, .param .b32 c, .param .b64 d, .param .b64 e) .noreturn;\n"
        ".global .align 1 .b8 said[5] = {116, 114, 117, 101, 0};\n"
        ".visible .entry k()\n{\n.reg .b64 %d<3>;\nmov.u64 %d1, said;\ncvta.global.u64 %d2, %d1;\n"
        "{\n.param .b64 a;\n.param .b64 b;\n.param .b32 c;\n.param .b64 d;\n.param .b64 e;\nst.param.b64 [a], %d2;\nst.param.b64 [b], %d2;\n"
        "st.param.b32 [c], 7;\nst.param.b64 [d], %d2;\nst.param.b64 [e], 1;\ncall.uni __assertfail, (a, b, c, d, e);\n}\nret;\n}\n";
    handle module = NULL, function = NULL;
    begin();
    NEED(cuModuleLoadData(&module, text));
    NEED(cuModuleGetFunction(&function, module, "k"));
    NAMED("the launch", cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
    after();
}
