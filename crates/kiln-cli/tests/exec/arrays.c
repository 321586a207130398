/* Arrays, textures and surfaces; the first argument says which case. */
#include "driver_api.h"

#include "arrays.h"

enum { W = 8, H = 4, D = 3, N = W * H };

static unsigned words[N * D], back[N * D];
static float numbers[N], seen[N];
static handle fetch_kernel, line_kernel, fill_kernel;

static void kernels(void) {
    handle module;
    begin();
    OK(cuModuleLoadData(&module, TEXTURES));
    OK(cuModuleGetFunction(&fetch_kernel, module, "fetch"));
    OK(cuModuleGetFunction(&line_kernel, module, "line"));
    OK(cuModuleGetFunction(&fill_kernel, module, "fill"));
    for (unsigned i = 0; i < N * D; i++) words[i] = 7 * i + 1;
    for (unsigned i = 0; i < N; i++) numbers[i] = (float)(i * i);
}

static handle plane(unsigned format) {
    struct plane of = {W, H, format, 1};
    handle array;
    OK(cuArrayCreate_v2(&array, &of));
    return array;
}

/* A copy of all rows between memory of the host and an array. */
static int rows(handle array, void *host, int to_array) {
    struct copy2d copy = {0};
    copy.from_kind = to_array ? HOST : ARRAY, copy.to_kind = to_array ? ARRAY : HOST;
    copy.from_host = host, copy.to_host = host;
    copy.from_array = array, copy.to_array = array;
    copy.width = 4 * W, copy.height = H;
    return cuMemcpy2D_v2(&copy);
}

static void copies(void) {
    kernels();
    handle array = plane(U32), other = plane(U32), line, volume, stream;
    struct plane told;
    struct shape shape = {W, H, D, U32, 1, 0}, told_shape;
    address p;
    OK(cuArrayGetDescriptor_v2(&told, array));
    TRUE(told.width == W && told.height == H && told.format == U32 && told.channels == 1);
    OK(rows(array, words, 1));
    OK(rows(array, back, 0));
    TRUE(!memcmp(back, words, 4 * N));
    /* A part of it into another array, from there to the device, and back. */
    struct copy2d part = {.from_x = 8, .from_y = 1, .from_kind = ARRAY, .from_array = array, .to_x = 4, .to_y = 2,
                          .to_kind = ARRAY, .to_array = other, .width = 12, .height = 2};
    OK(cuMemcpy2D_v2(&part));
    OK(cuMemAlloc_v2(&p, 256));
    struct copy2d out = {.from_x = 4, .from_y = 2, .from_kind = ARRAY, .from_array = other, .to_kind = DEVICE,
                         .to_device = p, .to_pitch = 16, .width = 12, .height = 2};
    OK(cuMemcpy2DUnaligned_v2(&out));
    OK(cuMemcpyDtoH_v2(back, p, 12));
    TRUE(back[0] == words[W + 2] && back[2] == words[W + 4]);
    OK(cuMemcpyDtoH_v2(back, p + 16, 12));
    TRUE(back[0] == words[2 * W + 2]);
    /* One row. */
    struct plane row = {W, 0, U32, 1};
    OK(cuArrayCreate_v2(&line, &row));
    OK(cuStreamCreate(&stream, 1));
    OK(cuMemcpyHtoA_v2(line, 0, words, 4 * W));
    OK(cuMemcpyHtoAAsync_v2(line, 8, words, 4, stream));
    OK(cuMemcpyAtoHAsync_v2(back, line, 0, 4 * W, stream));
    OK(cuStreamSynchronize(stream));
    TRUE(back[1] == words[1] && back[2] == words[0]);
    OK(cuMemcpyAtoD_v2(p, line, 4, 8));
    OK(cuMemcpyDtoA_v2(line, 16, p, 8));
    OK(cuMemcpyAtoA_v2(line, 0, line, 16, 4));
    OK(cuMemcpyAtoH_v2(back, line, 0, 4 * W));
    TRUE(back[0] == words[1] && back[4] == words[1] && back[5] == words[0]);
    /* Slices. */
    OK(cuArray3DCreate_v2(&volume, &shape));
    OK(cuArray3DGetDescriptor_v2(&told_shape, volume));
    TRUE(told_shape.width == W && told_shape.height == H && told_shape.depth == D);
    TRUE(told_shape.format == U32 && told_shape.channels == 1 && told_shape.flags == 0);
    struct copy3d whole = {.from_kind = HOST, .from_host = words, .to_kind = ARRAY, .to_array = volume, .width = 4 * W,
                           .height = H, .depth = D};
    OK(cuMemcpy3D_v2(&whole));
    struct copy3d slice = {.from_y = 1, .from_z = 2, .from_kind = ARRAY, .from_array = volume, .to_kind = HOST,
                           .to_host = back, .width = 4 * W, .height = 2, .depth = 1};
    OK(cuMemcpy3D_v2(&slice));
    TRUE(!memcmp(back, words + 2 * N + W, 4 * 2 * W));
    OK(cuArrayDestroy(volume));
    OK(cuArrayDestroy(line));
    OK(cuArrayDestroy(other));
    OK(cuArrayDestroy(array));
    OK(cuMemFree_v2(p));
}

static int fetch(unsigned long long texture, address to, float dx, float dy) {
    void *parameters[] = {&texture, &to, &dx, &dy};
    return cuLaunchKernel(fetch_kernel, 1, 1, 1, N, 1, 1, 0, NULL, parameters, NULL);
}

static void textures(void) {
    kernels();
    handle array = plane(F32);
    address to, memory;
    size_t pitch;
    unsigned long long texture, linear, same;
    struct resource resource = {.kind = OF_ARRAY, .of.array = array}, told;
    struct sampling points = {.modes = {CLAMP, CLAMP, CLAMP}}, blends = points, told_sampling;
    OK(cuMemAlloc_v2(&to, 4 * N));
    OK(rows(array, numbers, 1));
    OK(cuTexObjectCreate(&texture, &resource, &points, NULL));
    blends.filter = 1;
    OK(cuTexObjectCreate(&linear, &resource, &blends, NULL));
    OK(fetch(texture, to, 0.5f, 0.5f));
    OK(cuMemcpyDtoH_v2(seen, to, sizeof seen));
    TRUE(!memcmp(seen, numbers, sizeof seen));
    /* One to the right and one down, and the edge again. */
    OK(fetch(texture, to, 1.5f, 1.5f));
    OK(cuMemcpyDtoH_v2(seen, to, sizeof seen));
    TRUE(seen[0] == numbers[W + 1] && seen[W - 1] == numbers[2 * W - 1] && seen[N - 1] == numbers[N - 1]);
    /* Halfway between two texels of a row. */
    OK(fetch(linear, to, 1.0f, 0.5f));
    OK(cuMemcpyDtoH_v2(seen, to, sizeof seen));
    TRUE(seen[0] == (numbers[0] + numbers[1]) / 2 && seen[W + 2] == (numbers[W + 2] + numbers[W + 3]) / 2);
    /* What it was made of. */
    OK(cuTexObjectGetResourceDesc(&told, texture));
    TRUE(told.kind == OF_ARRAY && told.of.array == array);
    OK(cuTexObjectGetTextureDesc(&told_sampling, linear));
    TRUE(told_sampling.filter == 1 && told_sampling.modes[1] == CLAMP);
    struct view none = {.format = 7, .width = 7};
    OK(cuTexObjectGetResourceViewDesc(&none, texture));
    TRUE(none.format == 0 && none.width == 0);
    struct view view = {.format = 22 + 2, .width = W, .height = H};
    WANT(1, cuTexObjectCreate(&same, &resource, &points, &view));
    view.format = 22;
    OK(cuTexObjectCreate(&same, &resource, &points, &view));
    OK(cuTexObjectGetResourceViewDesc(&view, same));
    TRUE(view.width == W && view.format == 22);
    /* Texels that another copy wrote, after the object was made. */
    numbers[3] = -9;
    OK(rows(array, numbers, 1));
    OK(fetch(same, to, 0.5f, 0.5f));
    OK(cuMemcpyDtoH_v2(seen, to, sizeof seen));
    OK(cuTexObjectDestroy(same));
    TRUE(!memcmp(seen, numbers, sizeof seen));
    OK(cuTexObjectDestroy(texture));
    OK(cuTexObjectDestroy(linear));
    /* Rows that are apart, and memory without rows. */
    OK(cuMemAllocPitch_v2(&memory, &pitch, 4 * W, H, 4));
    struct copy2d in = {.from_kind = HOST, .from_host = numbers, .to_kind = DEVICE, .to_device = memory, .to_pitch = pitch,
                        .width = 4 * W, .height = H};
    OK(cuMemcpy2D_v2(&in));
    struct resource pitched = {.kind = OF_PITCHED, .of.pitched = {memory, F32, 1, W, H, pitch}};
    OK(cuTexObjectCreate(&texture, &pitched, &points, NULL));
    OK(fetch(texture, to, 0.5f, 0.5f));
    OK(cuMemcpyDtoH_v2(seen, to, sizeof seen));
    TRUE(!memcmp(seen, numbers, sizeof seen));
    OK(cuTexObjectDestroy(texture));
    OK(cuMemcpyHtoD_v2(memory, words, 4 * N));
    struct resource row = {.kind = OF_LINE, .of.line = {memory, U32, 1, 4 * (N - 1)}};
    points.flags = READ_INTEGERS;
    OK(cuTexObjectCreate(&texture, &row, &points, NULL));
    void *parameters[] = {&texture, &to};
    OK(cuLaunchKernel(line_kernel, 1, 1, 1, N, 1, 1, 0, NULL, parameters, NULL));
    OK(cuMemcpyDtoH_v2(back, to, 4 * N));
    /* An index outside reads 0. */
    TRUE(back[0] == words[0] && back[N - 2] == words[N - 2] && back[N - 1] == 0);
    OK(cuTexObjectDestroy(texture));
}

static int fill(unsigned long long surface, unsigned threads) {
    void *parameters[] = {&surface};
    return cuLaunchKernel(fill_kernel, 1, 1, 1, threads, 1, 1, 0, NULL, parameters, NULL);
}

static handle writable(void) {
    struct shape shape = {W, H, 0, U32, 1, SURFACE};
    handle array;
    OK(cuArray3DCreate_v2(&array, &shape));
    return array;
}

static void surfaces(void) {
    kernels();
    handle array = writable(), mipmapped, level;
    unsigned long long surface;
    struct resource resource = {.kind = OF_ARRAY, .of.array = array}, told;
    OK(cuSurfObjectCreate(&surface, &resource));
    OK(cuSurfObjectGetResourceDesc(&told, surface));
    TRUE(told.of.array == array);
    OK(fill(surface, N));
    OK(rows(array, back, 0));
    TRUE(back[0] == 100 && back[N - 1] == 100 + N - 1);
    OK(cuSurfObjectDestroy(surface));
    OK(cuArrayDestroy(array));
    struct shape shape = {W, W, 0, U32, 1, SURFACE};
    OK(cuMipmappedArrayCreate(&mipmapped, &shape, 99));
    OK(cuMipmappedArrayGetLevel(&level, mipmapped, 3));
    OK(cuArray3DGetDescriptor_v2(&shape, level));
    TRUE(shape.width == 1 && shape.height == 1);
    WANT(1, cuMipmappedArrayGetLevel(&level, mipmapped, 4));
    OK(cuMipmappedArrayGetLevel(&level, mipmapped, 0));
    resource.of.array = level;
    OK(cuSurfObjectCreate(&surface, &resource));
    OK(fill(surface, N));
    OK(rows(level, back, 0));
    TRUE(back[N - 1] == 100 + N - 1);
    OK(cuSurfObjectDestroy(surface));
    OK(cuMipmappedArrayDestroy(mipmapped));
}

static void bad(void) {
    kernels();
    handle array = plane(F32), made;
    unsigned long long texture;
    struct plane planes[] = {{0, 4, F32, 1}, {8, 4, 5, 1}, {8, 4, F32, 3}, {1 << 20, 4, F32, 1}};
    struct shape shapes[] = {{8, 0, 3, F32, 1, 0}, {8, 4, 6, F32, 1, CUBEMAP}, {8, 4, 0, F32, 1, 1 << 20}};
    struct resource resource = {.kind = OF_ARRAY, .of.array = array};
    struct sampling points = {.modes = {CLAMP, CLAMP, CLAMP}};
    for (unsigned i = 0; i < sizeof planes / sizeof *planes; i++) WANT(1, cuArrayCreate_v2(&made, &planes[i]));
    for (unsigned i = 0; i < sizeof shapes / sizeof *shapes; i++) WANT(1, cuArray3DCreate_v2(&made, &shapes[i]));
    WANT(1, cuArrayCreate_v2(NULL, &planes[0]));
    WANT(1, cuArrayCreate_v2(&made, NULL));
    WANT(400, cuArrayDestroy(NULL));
    struct copy2d outside = {.from_kind = HOST, .from_host = numbers, .to_y = 1, .to_kind = ARRAY, .to_array = array,
                             .width = 4 * W, .height = H};
    WANT(1, cuMemcpy2D_v2(&outside));
    outside.to_y = 0, outside.to_x = 4;
    WANT(1, cuMemcpy2D_v2(&outside));
    WANT(1, cuMemcpyHtoA_v2(array, 4 * W - 4, numbers, 8));
    WANT(1, cuTexObjectCreate(NULL, &resource, &points, NULL));
    WANT(1, cuTexObjectCreate(&texture, NULL, &points, NULL));
    WANT(1, cuTexObjectCreate(&texture, &resource, NULL, NULL));
    resource.kind = 9;
    WANT(1, cuTexObjectCreate(&texture, &resource, &points, NULL));
    OK(cuArrayDestroy(array));
}

/* Handles that are wild or of objects that are gone, which NVIDIA's library follows, and what it accepts though no kernel could use it. */
static void wild(void) {
    kernels();
    handle array = plane(F32), mipmapped, level;
    unsigned long long texture;
    struct resource resource = {.kind = OF_ARRAY, .of.array = array}, told;
    struct sampling points = {.modes = {CLAMP, CLAMP, CLAMP}};
    struct copy2d copy = {.from_kind = HOST, .from_host = numbers, .to_kind = ARRAY, .to_array = (handle)0x1234, .width = 4, .height = 1};
    WANT(400, cuMemcpy2D_v2(&copy));
    WANT(400, cuArrayDestroy((handle)0x1234));
    OK(cuTexObjectCreate(&texture, &resource, &points, NULL));
    OK(cuTexObjectDestroy(texture));
    WANT(1, cuTexObjectDestroy(texture));
    WANT(1, cuTexObjectGetResourceDesc(&told, texture));
    struct resource nowhere = {.kind = OF_LINE, .of.line = {0x12000, F32, 1, 64}};
    WANT(1, cuTexObjectCreate(&texture, &nowhere, &points, NULL));
    /* An array that is not for surfaces. */
    WANT(1, cuSurfObjectCreate(&texture, &resource));
    WANT(1, cuSurfObjectDestroy(0x1234));
    OK(cuArrayDestroy(array));
    WANT(400, cuArrayDestroy(array));
    WANT(400, cuTexObjectCreate(&texture, &resource, &points, NULL));
    struct shape shape = {W, W, 0, U32, 1, SURFACE};
    OK(cuMipmappedArrayCreate(&mipmapped, &shape, 99));
    OK(cuMipmappedArrayGetLevel(&level, mipmapped, 3));
    WANT(400, cuArrayDestroy(level));
    OK(cuMipmappedArrayDestroy(mipmapped));
    WANT(400, cuMipmappedArrayDestroy(mipmapped));
    WANT(400, cuArrayGetDescriptor_v2(&(struct plane){0}, level));
}

/* Texels that nothing wrote, and a surface access outside. */
static void mistakes(int is_surface) {
    kernels();
    address to;
    unsigned long long object;
    OK(cuMemAlloc_v2(&to, 4 * N));
    struct resource resource = {.kind = OF_ARRAY, .of.array = is_surface ? writable() : plane(F32)};
    struct sampling points = {.modes = {CLAMP, CLAMP, CLAMP}};
    if (is_surface) {
        OK(cuSurfObjectCreate(&object, &resource));
        OK(fill(object, N + 1));
        TRUE(cuCtxSynchronize() != 0);
        return;
    }
    OK(cuTexObjectCreate(&object, &resource, &points, NULL));
    OK(fetch(object, to, 0.5f, 0.5f));
    OK(cuMemcpyDtoH_v2(seen, to, sizeof seen));
}

/* An object that is destroyed while a launch may use it, or before it is queued. */
static void destroyed(const char *when) {
    kernels();
    address to;
    handle stream, array = plane(F32);
    unsigned long long texture, another;
    OK(cuMemAlloc_v2(&to, 4 * N));
    OK(cuStreamCreate(&stream, 1));
    OK(rows(array, numbers, 1));
    struct resource resource = {.kind = OF_ARRAY, .of.array = array};
    struct sampling points = {.modes = {CLAMP, CLAMP, CLAMP}};
    OK(cuTexObjectCreate(&texture, &resource, &points, NULL));
    OK(cuCtxSynchronize());
    if (!strcmp(when, "before")) OK(cuTexObjectDestroy(texture));
    OK(fetch(texture, to, 0.5f, 0.5f));
    if (!strcmp(when, "waited")) OK(cuCtxSynchronize());
    if (!strcmp(when, "another waited")) OK(cuStreamSynchronize(stream));
    if (strcmp(when, "before")) OK(cuTexObjectDestroy(texture));
    /* A lost device is told by either. */
    cuTexObjectCreate(&another, &resource, &points, NULL);
    cuCtxSynchronize();
}

int main(int count, char **arguments) {
    const char *name = count > 1 ? arguments[1] : "";
    if (!strcmp(name, "copies")) copies();
    if (!strcmp(name, "textures")) textures();
    if (!strcmp(name, "surfaces")) surfaces();
    if (!strncmp(name, "destroyed ", 10)) destroyed(name + 10);
    if (!strcmp(name, "bad")) bad();
    if (!strcmp(name, "wild")) wild();
    if (!strcmp(name, "unwritten")) mistakes(0);
    if (!strcmp(name, "outside")) mistakes(1);
    return 0;
}
