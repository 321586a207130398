/* Arrays, textures, surfaces, and pools for other processes. */
#include "answers.h"

#include "../arrays.h"

static unsigned words_in[256], back[256];
static float seen[32];

static handle array_of(size_t width, size_t height, unsigned format, unsigned channels) {
    struct plane plane = {width, height, format, channels};
    handle array = NULL;
    NEED(cuArrayCreate_v2(&array, &plane));
    return array;
}

static int create(size_t width, size_t height, unsigned format, unsigned channels) {
    struct plane plane = {width, height, format, channels};
    handle array = NULL;
    return cuArrayCreate_v2(&array, &plane);
}

static int create3d(size_t width, size_t height, size_t depth, unsigned format, unsigned channels, unsigned flags) {
    struct shape shape = {width, height, depth, format, channels, flags};
    handle array = NULL;
    return cuArray3DCreate_v2(&array, &shape);
}

void arrays(void) {
    struct plane plane = {8, 4, U32, 1};
    struct shape shape = {8, 4, 0, U32, 1, 0};
    handle array = NULL, other = NULL, mipmapped = NULL;
    begin();
    CODE(cuArrayCreate_v2(&array, &plane));
    CODE(cuArrayCreate_v2(NULL, &plane));
    CODE(cuArrayCreate_v2(&other, NULL));
    CODE(create(8, 0, F32, 4));
    CODE(create(0, 4, F32, 1));
    CODE(create(0, 0, F32, 1));
    CODE(create(8, 4, 0, 1));
    CODE(create(8, 4, 5, 1));
    CODE(create(8, 4, 0x21, 1));
    CODE(create(8, 4, F32, 0));
    CODE(create(8, 4, F32, 3));
    CODE(create(8, 4, F32, 5));
    CODE(create(131072, 0, U8, 1));
    CODE(create(131073, 0, U8, 1));
    CODE(create(131073, 2, U8, 1));
    CODE(create(2, 65536, U8, 1));
    CODE(create(2, 65537, U8, 1));
    CODE(create3d(8, 4, 2, F32, 1, 0));
    CODE(create3d(8, 0, 2, F32, 1, 0));
    CODE(create3d(8, 0, 2, F32, 1, LAYERED));
    CODE(create3d(8, 4, 2, F32, 1, LAYERED));
    CODE(create3d(8, 4, 0, F32, 1, LAYERED));
    CODE(create3d(8, 4, 2048, U8, 1, LAYERED));
    CODE(create3d(8, 4, 2049, U8, 1, LAYERED));
    CODE(create3d(16385, 4, 2, U8, 1, 0));
    CODE(create3d(8, 8, 6, F32, 1, CUBEMAP));
    CODE(create3d(8, 8, 5, F32, 1, CUBEMAP));
    CODE(create3d(8, 4, 6, F32, 1, CUBEMAP));
    CODE(create3d(8, 8, 12, F32, 1, CUBEMAP | LAYERED));
    CODE(create3d(8, 8, 11, F32, 1, CUBEMAP | LAYERED));
    CODE(create3d(8, 4, 0, F32, 1, SURFACE));
    CODE(create3d(8, 4, 0, F32, 1, 8));
    CODE(create3d(8, 0, 0, F32, 1, 8));
    CODE(create3d(8, 4, 2, F32, 1, 8));
    CODE(create3d(8, 4, 0, F32, 1, 1u << 20));
    CODE(cuArrayGetDescriptor_v2(&plane, array));
    value("width", (long long)plane.width);
    value("format", plane.format);
    CODE(cuArray3DGetDescriptor_v2(&shape, array));
    value("depth", (long long)shape.depth);
    value("flags", shape.flags);
    CODE(cuArrayGetDescriptor_v2(NULL, array));
    CODE(cuArrayGetDescriptor_v2(&plane, NULL));
    CODE(cuArrayGetPlane(&other, array, 0));
    CODE(cuMipmappedArrayCreate(&mipmapped, &shape, 2));
    CODE(cuMipmappedArrayGetLevel(&other, mipmapped, 1));
    CODE(cuArray3DGetDescriptor_v2(&shape, other));
    value("width of a level", (long long)shape.width);
    CODE(cuMipmappedArrayGetLevel(&other, mipmapped, 2));
    CODE(cuMipmappedArrayDestroy(mipmapped));
    CODE(cuMipmappedArrayDestroy(NULL));
    CODE(cuArrayDestroy(array));
    CODE(cuArrayDestroy(NULL));
}

/* A copy of some rows to an array. */
static int rows(handle array, size_t x, size_t y, size_t width, size_t height) {
    struct copy2d copy = {.from_kind = HOST, .from_host = words_in, .from_pitch = 64, .to_x = x, .to_y = y, .to_kind = ARRAY,
                          .to_array = array, .width = width, .height = height};
    return cuMemcpy2D_v2(&copy);
}

void array_copies(void) {
    handle array, line, layered = NULL;
    address p = 0;
    begin();
    for (unsigned i = 0; i < 256; i++) words_in[i] = i * 3;
    array = array_of(8, 4, U32, 1), line = array_of(8, 0, U32, 1);
    struct shape shape = {8, 4, 3, U32, 1, LAYERED};
    NEED(cuArray3DCreate_v2(&layered, &shape));
    NEED(cuMemAlloc_v2(&p, 1024));
    NEED(cuMemsetD8_v2(p, 7, 1024));
    CODE(rows(array, 0, 0, 32, 4));
    CODE(rows(array, 4, 1, 28, 3));
    CODE(rows(array, 4, 1, 32, 3));
    CODE(rows(array, 0, 1, 32, 4));
    CODE(rows(array, 2, 0, 4, 1));
    CODE(rows(array, 0, 0, 6, 1));
    CODE(rows(array, 0, 0, 0, 4));
    CODE(rows(NULL, 0, 0, 32, 4));
    struct copy2d out = {.from_kind = ARRAY, .from_array = array, .to_kind = HOST, .to_host = back, .width = 32, .height = 4};
    CODE(cuMemcpy2D_v2(&out));
    value("the last word", back[31]);
    CODE(cuMemcpyHtoA_v2(line, 0, words_in, 32));
    CODE(cuMemcpyHtoA_v2(line, 4, words_in, 32));
    CODE(cuMemcpyHtoA_v2(line, 2, words_in, 4));
    CODE(cuMemcpyHtoA_v2(line, 0, words_in, 0));
    CODE(cuMemcpyHtoA_v2(NULL, 0, words_in, 4));
    CODE(cuMemcpyHtoA_v2(array, 0, words_in, 32));
    CODE(cuMemcpyHtoA_v2(array, 0, words_in, 64));
    CODE(cuMemcpyAtoH_v2(back, line, 8, 8));
    value("a word of a row", back[0]);
    CODE(cuMemcpyAtoD_v2(p, line, 0, 32));
    CODE(cuMemcpyAtoD_v2(0, line, 0, 32));
    CODE(cuMemcpyDtoA_v2(line, 16, p, 16));
    CODE(cuMemcpyAtoA_v2(line, 0, line, 16, 16));
    CODE(cuMemcpyAtoA_v2(line, 0, array, 0, 32));
    struct copy3d slices = {.from_kind = HOST, .from_host = words_in, .to_z = 1, .to_kind = ARRAY, .to_array = layered,
                            .width = 32, .height = 4, .depth = 2};
    CODE(cuMemcpy3D_v2(&slices));
    slices.to_z = 2;
    NAMED("slices outside", cuMemcpy3D_v2(&slices));
}

/* A texture of a kind. */
static int texture(const struct resource *resource, unsigned mode, unsigned filter, unsigned flags) {
    struct sampling sampling = {.modes = {mode, mode, mode}, .filter = filter, .flags = flags};
    unsigned long long made = 0;
    int code = cuTexObjectCreate(&made, resource, &sampling, NULL);
    if (code == 0) NEED(cuTexObjectDestroy(made));
    return code;
}

void textures(void) {
    handle array, numbers, module, kernel;
    address p = 0, to = 0;
    size_t pitch = 0, most = 0;
    unsigned long long object = 0, surface = 0;
    struct sampling sampling = {.modes = {CLAMP, CLAMP, CLAMP}}, told;
    struct resource resource = {.kind = OF_ARRAY}, told_resource;
    struct view view = {.format = 22, .width = 8, .height = 4};
    begin();
    array = array_of(8, 4, F32, 1), numbers = array_of(8, 4, U8, 1);
    NEED(cuMemAllocPitch_v2(&p, &pitch, 4096, 4, 4));
    NEED(cuMemAlloc_v2(&to, 128));
    resource.of.array = array;
    CODE(cuTexObjectCreate(&object, &resource, &sampling, NULL));
    CODE(cuTexObjectCreate(NULL, &resource, &sampling, NULL));
    CODE(cuTexObjectCreate(&surface, NULL, &sampling, NULL));
    CODE(cuTexObjectCreate(&surface, &resource, NULL, NULL));
    CODE(cuTexObjectCreate(&surface, &resource, &sampling, &view));
    view.format = 23;
    NAMED("a view of larger texels", cuTexObjectCreate(&surface, &resource, &sampling, &view));
    view.format = 22, view.width = 4;
    NAMED("a view of fewer texels", cuTexObjectCreate(&surface, &resource, &sampling, &view));
    CODE(texture(&resource, WRAP, 1, NORMALIZED));
    CODE(texture(&resource, BORDER, 0, 0));
    CODE(texture(&resource, 4, 0, 0));
    CODE(texture(&resource, CLAMP, 2, 0));
    CODE(texture(&resource, CLAMP, 1, READ_INTEGERS));
    resource.of.array = numbers;
    NAMED("bytes as fractions, blended", texture(&resource, CLAMP, 1, 0));
    NAMED("bytes as integers, blended", texture(&resource, CLAMP, 1, READ_INTEGERS));
    resource.of.array = array;
    resource.flags = 1;
    NAMED("a flag", texture(&resource, CLAMP, 0, 0));
    resource.flags = 0, resource.kind = 9;
    NAMED("no kind", texture(&resource, CLAMP, 0, 0));
    struct resource line = {.kind = OF_LINE, .of.line = {p, F32, 1, 64}};
    NAMED("memory", texture(&line, CLAMP, 0, 0));
    line.of.line.start = p + 4;
    NAMED("memory that is not aligned", texture(&line, CLAMP, 0, 0));
    line.of.line.start = 0x12000;
    NAMED("no memory", texture(&line, CLAMP, 0, 0));
    line.of.line.start = p, line.of.line.bytes = 0;
    NAMED("no bytes", texture(&line, CLAMP, 0, 0));
    struct resource pitched = {.kind = OF_PITCHED, .of.pitched = {p, F32, 1, 64, 4, pitch}};
    NAMED("rows", texture(&pitched, CLAMP, 0, 0));
    pitched.of.pitched.pitch = 260;
    NAMED("rows of another pitch", texture(&pitched, CLAMP, 0, 0));
    pitched.of.pitched.pitch = 64;
    NAMED("rows that overlap", texture(&pitched, CLAMP, 0, 0));
    CODE(cuTexObjectGetTextureDesc(&told, object));
    value("mode", told.modes[0]);
    CODE(cuTexObjectGetResourceDesc(&told_resource, object));
    value("kind", told_resource.kind);
    CODE(cuTexObjectGetResourceViewDesc(&view, object));
    CODE(cuTexObjectGetTextureDesc(NULL, object));
    resource.kind = OF_ARRAY;
    CODE(cuSurfObjectCreate(&surface, &resource));
    CODE(cuDeviceGetTexture1DLinearMaxWidth(&most, F32, 1, 0));
    value("texels of a line", (long long)most);
    CODE(cuDeviceGetTexture1DLinearMaxWidth(&most, F32, 3, 0));
    struct shape shape = {8, 4, 0, U32, 1, SURFACE};
    NEED(cuArray3DCreate_v2(&numbers, &shape));
    resource.of.array = numbers;
    NAMED("a surface of an array for surfaces", cuSurfObjectCreate(&surface, &resource));
    CODE(cuSurfObjectGetResourceDesc(&told_resource, surface));
    NEED(cuModuleLoadData(&module, TEXTURES));
    NEED(cuModuleGetFunction(&kernel, module, "fill"));
    void *parameters[] = {&surface};
    CODE(cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, NULL, parameters, NULL));
    struct copy2d out = {.from_kind = ARRAY, .from_array = numbers, .to_kind = HOST, .to_host = back, .width = 32, .height = 4};
    CODE(cuMemcpy2D_v2(&out));
    value("the last texel", back[31]);
    /* Halves of texels, blended. */
    for (unsigned i = 0; i < 32; i++) seen[i] = (float)(i * i);
    struct copy2d in = {.from_kind = HOST, .from_host = seen, .to_kind = ARRAY, .to_array = array, .width = 32, .height = 4};
    NEED(cuMemcpy2D_v2(&in));
    NEED(cuModuleGetFunction(&kernel, module, "fetch"));
    resource.of.array = array, sampling.filter = 1;
    NEED(cuTexObjectCreate(&object, &resource, &sampling, NULL));
    float moved[] = {0.5f, 1.0f, 1.25f, 0.75f};
    for (unsigned i = 0; i < 4; i++) {
        void *arguments[] = {&object, &to, &moved[i], &moved[3 - i]};
        NEED(cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, NULL, arguments, NULL));
        NEED(cuMemcpyDtoH_v2(seen, to, sizeof seen));
        for (unsigned at = 0; at < 32; at += 5) value("a texel, times 1024", (long long)(seen[at] * 1024));
    }
    CODE(cuSurfObjectDestroy(surface));
    CODE(cuTexObjectDestroy(object));
}
