/* The functions of arrays, textures and surfaces. */
struct plane {
    size_t width, height;
    unsigned format, channels;
};
struct shape {
    size_t width, height, depth;
    unsigned format, channels, flags;
};
struct resource {
    unsigned kind, padding;
    union {
        handle array;
        struct {
            address start;
            unsigned format, channels;
            size_t bytes;
        } line;
        struct {
            address start;
            unsigned format, channels;
            size_t width, height, pitch;
        } pitched;
        unsigned long long words[16];
    } of;
    unsigned flags, rest;
};
struct sampling {
    unsigned modes[3], filter, flags, anisotropy, mipmap_filter;
    float bias, range[2], border[4];
    int rest[12];
};
struct view {
    unsigned format;
    size_t width, height, depth;
    unsigned levels[2], layers[2], rest[16];
};
struct copy3d {
    size_t from_x, from_y, from_z, from_level;
    int from_kind;
    const void *from_host;
    address from_device;
    handle from_array;
    void *from_rest;
    size_t from_pitch, from_height;
    size_t to_x, to_y, to_z, to_level;
    int to_kind;
    void *to_host;
    address to_device;
    handle to_array;
    void *to_rest;
    size_t to_pitch, to_height;
    size_t width, height, depth;
};
enum { HOST = 1, DEVICE = 2, ARRAY = 3 };
enum { U8 = 1, U16 = 2, U32 = 3, S32 = 10, F16 = 16, F32 = 32 };
enum { LAYERED = 1, SURFACE = 2, CUBEMAP = 4 };
enum { OF_ARRAY = 0, OF_LEVELS = 1, OF_LINE = 2, OF_PITCHED = 3 };
enum { READ_INTEGERS = 1, NORMALIZED = 2 };
enum { WRAP = 0, CLAMP = 1, BORDER = 3 };

int cuArrayCreate_v2(handle *array, const struct plane *plane);
int cuArray3DCreate_v2(handle *array, const struct shape *shape);
int cuArrayDestroy(handle array);
int cuArrayGetDescriptor_v2(struct plane *plane, handle array);
int cuArray3DGetDescriptor_v2(struct shape *shape, handle array);
int cuArrayGetPlane(handle *plane, handle array, unsigned index);
int cuMipmappedArrayCreate(handle *array, const struct shape *shape, unsigned levels);
int cuMipmappedArrayGetLevel(handle *level, handle array, unsigned index);
int cuMipmappedArrayDestroy(handle array);
int cuMemcpyHtoA_v2(handle to, size_t offset, const void *from, size_t bytes);
int cuMemcpyAtoH_v2(void *to, handle from, size_t offset, size_t bytes);
int cuMemcpyHtoAAsync_v2(handle to, size_t offset, const void *from, size_t bytes, handle stream);
int cuMemcpyAtoHAsync_v2(void *to, handle from, size_t offset, size_t bytes, handle stream);
int cuMemcpyDtoA_v2(handle to, size_t offset, address from, size_t bytes);
int cuMemcpyAtoD_v2(address to, handle from, size_t offset, size_t bytes);
int cuMemcpyAtoA_v2(handle to, size_t to_offset, handle from, size_t from_offset, size_t bytes);
int cuMemcpy3D_v2(const struct copy3d *copy);
int cuTexObjectCreate(unsigned long long *texture, const struct resource *resource, const struct sampling *sampling,
                      const struct view *view);
int cuTexObjectDestroy(unsigned long long texture);
int cuTexObjectGetResourceDesc(struct resource *resource, unsigned long long texture);
int cuTexObjectGetTextureDesc(struct sampling *sampling, unsigned long long texture);
int cuTexObjectGetResourceViewDesc(struct view *view, unsigned long long texture);
int cuSurfObjectCreate(unsigned long long *surface, const struct resource *resource);
int cuSurfObjectDestroy(unsigned long long surface);
int cuSurfObjectGetResourceDesc(struct resource *resource, unsigned long long surface);
int cuDeviceGetTexture1DLinearMaxWidth(size_t *texels, int format, unsigned channels, int device);

/* `fetch` reads a texture of 8 texels a row at each texel's corner and some more; `line` reads by index; `fill` writes 100 and its number to a
 * surface of 8 texels a row. Each has a thread for a texel. */
static const char *TEXTURES =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".visible .entry fetch(.param .u64 tex, .param .u64 to, .param .f32 dx, .param .f32 dy)\n{\n"
    ".reg .b32 %t, %xi, %yi;\n.reg .f32 %x, %y, %a, %b, %c, %d, %dx, %dy;\n.reg .b64 %tex, %out, %at;\n"
    "ld.param.u64 %tex, [tex];\nld.param.u64 %out, [to];\nld.param.f32 %dx, [dx];\nld.param.f32 %dy, [dy];\n"
    "mov.u32 %t, %tid.x;\nand.b32 %xi, %t, 7;\nshr.u32 %yi, %t, 3;\n"
    "cvt.rn.f32.u32 %x, %xi;\nadd.f32 %x, %x, %dx;\ncvt.rn.f32.u32 %y, %yi;\nadd.f32 %y, %y, %dy;\n"
    "tex.2d.v4.f32.f32 {%a, %b, %c, %d}, [%tex, {%x, %y}];\n"
    "mul.wide.u32 %at, %t, 4;\nadd.s64 %out, %out, %at;\nst.global.f32 [%out], %a;\nret;\n}\n"
    ".visible .entry line(.param .u64 tex, .param .u64 to)\n{\n"
    ".reg .b32 %t, %a, %b, %c, %d;\n.reg .b64 %tex, %out, %at;\n"
    "ld.param.u64 %tex, [tex];\nld.param.u64 %out, [to];\nmov.u32 %t, %tid.x;\n"
    "tex.1d.v4.u32.s32 {%a, %b, %c, %d}, [%tex, {%t}];\n"
    "mul.wide.u32 %at, %t, 4;\nadd.s64 %out, %out, %at;\nst.global.u32 [%out], %a;\nret;\n}\n"
    ".visible .entry fill(.param .u64 surface)\n{\n"
    ".reg .b32 %t, %x, %y, %v;\n.reg .b64 %s;\n"
    "ld.param.u64 %s, [surface];\nmov.u32 %t, %tid.x;\nand.b32 %x, %t, 7;\nshl.b32 %x, %x, 2;\nshr.u32 %y, %t, 3;\n"
    "add.s32 %v, %t, 100;\nsust.b.2d.b32.trap [%s, {%x, %y}], {%v};\nret;\n}\n";
