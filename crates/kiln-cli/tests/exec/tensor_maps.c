/* Tensor maps and tensor copies; the first argument says which case. */
#include "driver_api.h"

struct map {
    _Alignas(64) unsigned char bytes[128];
};

int cuTensorMapEncodeTiled(struct map *map, int element, unsigned rank, void *start, const unsigned long long *dimensions,
                           const unsigned long long *strides, const unsigned *boxes, const unsigned *element_strides,
                           int interleave, int swizzle, int promotion, int fill);
int cuTensorMapEncodeIm2col(struct map *map, int element, unsigned rank, void *start, const unsigned long long *dimensions,
                            const unsigned long long *strides, const int *lower, const int *upper, unsigned channels,
                            unsigned pixels, const unsigned *element_strides, int interleave, int swizzle, int promotion,
                            int fill);
int cuTensorMapReplaceAddress(struct map *map, void *start);

enum { COLUMNS = 32, ROWS = 16, N = COLUMNS * ROWS, U32 = 2, SWIZZLE_64 = 2, NONE = 0 };

/* Copies a tile of 16 columns and 8 rows, from column 8 and row 4 on, to the first tile of another matrix. */
static const char *TILE =
    ".version 8.6\n.target sm_90a\n.address_size 64\n"
    ".visible .entry tile(.param .align 64 .b8 from[128], .param .align 64 .b8 to[128])\n{\n"
    ".reg .pred %p<3>;\n.reg .b32 %r<8>;\n.reg .b64 %d<6>;\n"
    ".shared .align 1024 .b8 data[1024];\n.shared .align 8 .b8 bar[8];\n"
    "mov.b64 %d1, from;\ncvta.param.u64 %d2, %d1;\nmov.b64 %d3, to;\ncvta.param.u64 %d4, %d3;\n"
    "mov.u32 %r1, data;\nmov.u32 %r2, bar;\nmov.u32 %r3, %tid.x;\n"
    "setp.ne.u32 %p1, %r3, 0;\n@%p1 bra done;\n"
    "mbarrier.init.shared::cta.b64 [%r2], 1;\nfence.proxy.async.shared::cta;\n"
    "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 512;\n"
    "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r1], [%d2, {8, 4}], [%r2];\n"
    "wait:\nmbarrier.try_wait.parity.shared::cta.b64 %p2, [%r2], 0;\n@!%p2 bra wait;\n"
    "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%d4, {0, 0}], [%r1];\n"
    "cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;\n"
    "done:\nret;\n}\n";

static const unsigned long long SIZES[] = {COLUMNS, ROWS}, STRIDES[] = {4 * COLUMNS};
static const unsigned BOX[] = {16, 8}, ONES[] = {1, 1, 1, 1, 1};

static int encode(struct map *map, address p) {
    return cuTensorMapEncodeTiled(map, U32, 2, (void *)(size_t)p, SIZES, STRIDES, BOX, ONES, NONE, SWIZZLE_64, 2, 0);
}

static handle tile_kernel(void) {
    handle module, function;
    OK(cuModuleLoadData(&module, TILE));
    OK(cuModuleGetFunction(&function, module, "tile"));
    return function;
}

static int run(handle function, struct map *from, struct map *to) {
    void *parameters[] = {from, to};
    return cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, NULL, parameters, NULL);
}

static void expect(address p, unsigned first) {
    unsigned read_back[N];
    OK(cuMemcpyDtoH_v2(read_back, p, sizeof read_back));
    for (unsigned y = 0; y < ROWS; y++)
        for (unsigned x = 0; x < COLUMNS; x++) {
            unsigned want = x < 16 && y < 8 ? first + (y + 4) * COLUMNS + x + 8 : 0;
            TRUE(read_back[y * COLUMNS + x] == want);
        }
}

/* A tile is moved; then the maps get other addresses. */
static void tile(address p) {
    struct map from, to;
    unsigned content[2 * N];
    handle function = tile_kernel();
    for (unsigned i = 0; i < 2 * N; i++) content[i] = i;
    OK(cuMemcpyHtoD_v2(p, content, sizeof content));
    OK(cuMemsetD32_v2(p + 8 * N, 0, 2 * N));
    OK(encode(&from, p));
    OK(encode(&to, p + 8 * N));
    OK(run(function, &from, &to));
    expect(p + 8 * N, 0);
    OK(cuTensorMapReplaceAddress(&from, (void *)(size_t)(p + 4 * N)));
    OK(cuTensorMapReplaceAddress(&to, (void *)(size_t)(p + 12 * N)));
    OK(run(function, &from, &to));
    expect(p + 12 * N, N);
}

/* What the driver refuses. */
static void refused(address p) {
    struct map pair[2], *map = pair;
    void *start = (void *)(size_t)p;
    const unsigned long long odd[] = {100}, image[] = {64, 8, 8, 2}, steps[] = {256, 2048, 16384};
    const unsigned wide[] = {32, 8};
    const int lower[] = {-1, -1}, upper[] = {-1, -1};
#define TILED(map, element, rank, start, strides, boxes, swizzle, promotion, fill) \
    cuTensorMapEncodeTiled(map, element, rank, start, SIZES, strides, boxes, ONES, NONE, swizzle, promotion, fill)
    OK(TILED(map, U32, 2, start, STRIDES, BOX, SWIZZLE_64, 0, 0));
    WANT(1, TILED(NULL, U32, 2, start, STRIDES, BOX, SWIZZLE_64, 0, 0));
    WANT(1, TILED((struct map *)((char *)map + 16), U32, 2, start, STRIDES, BOX, SWIZZLE_64, 0, 0));
    WANT(1, TILED(map, 77, 2, start, STRIDES, BOX, SWIZZLE_64, 0, 0));
    WANT(1, TILED(map, U32, 0, start, STRIDES, BOX, SWIZZLE_64, 0, 0));
    WANT(1, TILED(map, U32, 6, start, STRIDES, BOX, SWIZZLE_64, 0, 0));
    WANT(1, TILED(map, U32, 2, (char *)start + 4, STRIDES, BOX, SWIZZLE_64, 0, 0));
    WANT(1, TILED(map, U32, 2, start, odd, BOX, SWIZZLE_64, 0, 0));
    WANT(1, TILED(map, U32, 2, start, NULL, BOX, SWIZZLE_64, 0, 0));
    WANT(1, TILED(map, U32, 2, start, STRIDES, NULL, SWIZZLE_64, 0, 0));
    /* A row of 128 bytes is wider than the swizzle. */
    WANT(1, TILED(map, U32, 2, start, STRIDES, wide, SWIZZLE_64, 0, 0));
    WANT(1, TILED(map, U32, 2, start, STRIDES, BOX, 9, 0, 0));
    WANT(1, TILED(map, U32, 2, start, STRIDES, BOX, SWIZZLE_64, 4, 0));
    /* Integers are not filled with NaNs. */
    WANT(1, TILED(map, U32, 2, start, STRIDES, BOX, SWIZZLE_64, 0, 1));
    OK(cuTensorMapEncodeIm2col(map, U32, 4, start, image, steps, lower, upper, 16, 32, ONES, NONE, SWIZZLE_64, 0, 0));
    WANT(1, cuTensorMapEncodeIm2col(map, U32, 1, start, image, steps, lower, upper, 16, 32, ONES, NONE, NONE, 0, 0));
    WANT(1, cuTensorMapEncodeIm2col(map, U32, 4, start, image, steps, lower, upper, 512, 32, ONES, NONE, NONE, 0, 0));
    OK(cuTensorMapReplaceAddress(map, (char *)start + 16));
    WANT(1, cuTensorMapReplaceAddress(map, (char *)start + 1));
    WANT(1, cuTensorMapReplaceAddress(NULL, start));
    memset(map, 0, sizeof *map);
    WANT(1, cuTensorMapReplaceAddress(map, start));
}

/* The memory behind a map is gone. */
static void freed(address p) {
    struct map from, to;
    address gone;
    handle function = tile_kernel();
    OK(cuMemsetD32_v2(p, 0, N));
    OK(cuMemAlloc_v2(&gone, 4 * N));
    OK(cuMemsetD32_v2(gone, 0, N));
    OK(encode(&from, gone));
    OK(encode(&to, p));
    OK(cuMemFree_v2(gone));
    run(function, &from, &to);
    cuCtxSynchronize();
}

int main(int count, char **words) {
    address p;
    const char *which = count > 1 ? words[1] : "tile";
    begin();
    OK(cuMemAlloc_v2(&p, 16 * N));
    if (!strcmp(which, "tile")) tile(p);
    else if (!strcmp(which, "refused")) refused(p);
    else freed(p);
    return 0;
}
