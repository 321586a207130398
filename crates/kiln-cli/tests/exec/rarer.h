/* Functions that few programs call: lists of copies, attributes of streams and ranges, texture references, launches of the first versions. */
struct where {
    int kind, number;
};
struct copy_attributes {
    int order;
    struct where from, to;
    unsigned flags;
};
struct window {
    void *start;
    size_t bytes;
    float ratio;
    int hit, miss;
};
union stream_value {
    char room[64];
    int number;
    struct window window;
    unsigned char pair[2];
};
struct launch_shape {
    unsigned grid[3], block[3], shared_bytes;
    handle stream;
    const void *attributes;
    unsigned count;
};
struct cluster_attribute {
    int kind, padding;
    unsigned of[16];
};
int cuMemcpyBatchAsync(address *to, address *from, size_t *bytes, size_t count, struct copy_attributes *attributes, size_t *begins,
                       size_t kinds, size_t *failed, handle stream);
int cuMemcpyBatchAsync_v2(address *to, address *from, size_t *bytes, size_t count, struct copy_attributes *attributes, size_t *begins,
                          size_t kinds, handle stream);
int cuMemPrefetchBatchAsync(address *at, size_t *bytes, size_t count, struct where *to, size_t *begins, size_t places,
                            unsigned long long flags, handle stream);
int cuMemDiscardBatchAsync(address *at, size_t *bytes, size_t count, unsigned long long flags, handle stream);
int cuMemRangeGetAttribute(void *out, size_t room, int attribute, address start, size_t bytes);
int cuMemRangeGetAttributes(void **out, size_t *rooms, int *attributes, size_t count, address start, size_t bytes);
int cuStreamGetAttribute(handle stream, int attribute, union stream_value *out);
int cuStreamSetAttribute(handle stream, int attribute, const union stream_value *value);
int cuOccupancyMaxActiveClusters(int *out, handle function, const struct launch_shape *shape);
int cuMemGetDefaultMemPool(handle *pool, struct where *place, int kind);
int cuMemGetMemPool(handle *pool, struct where *place, int kind);
int cuMemSetMemPool(struct where *place, int kind, handle pool);
int cuCtxAttach(handle *context, unsigned flags);
int cuCtxDetach(handle context);
int cuCtxRecordEvent(handle context, handle event);
int cuCtxWaitEvent(handle context, handle event);
int cuCtxGetExecAffinity(void *out, int kind);
int cuDeviceGetLuid(char *luid, unsigned *mask, int device);
int cuDeviceGetHostAtomicCapabilities(unsigned *out, const int *operations, unsigned count, int device);
int cuFlushGPUDirectRDMAWrites(int target, int scope);
int cuMemGetHandleForAddressRange(void *out, address start, size_t bytes, int kind, unsigned long long flags);
int cuLibraryGetManaged(address *out, size_t *bytes, handle library, const char *name);
int cuLibraryGetUnifiedFunction(void **out, handle library, const char *name);
int cuLogsCurrent(unsigned *at, unsigned flags);
int cuLogsDumpToMemory(unsigned *at, char *out, size_t *bytes, unsigned flags);
int cuLogsDumpToFile(unsigned *at, const char *file, unsigned flags);
int cuModuleGetTexRef(handle *out, handle module, const char *name);
int cuModuleGetSurfRef(handle *out, handle module, const char *name);
int cuTexRefCreate(handle *out);
int cuTexRefDestroy(handle reference);
int cuTexRefSetAddress_v2(size_t *offset, handle reference, address start, size_t bytes);
int cuTexRefGetAddress_v2(address *start, handle reference);
int cuTexRefSetFormat(handle reference, unsigned format, int channels);
int cuTexRefGetFormat(unsigned *format, int *channels, handle reference);
int cuTexRefSetAddressMode(handle reference, int dimension, int mode);
int cuTexRefGetAddressMode(int *mode, handle reference, int dimension);
int cuTexRefSetFilterMode(handle reference, int mode);
int cuTexRefGetFilterMode(int *mode, handle reference);
int cuTexRefSetFlags(handle reference, unsigned flags);
int cuTexRefGetFlags(unsigned *flags, handle reference);
int cuTexRefSetArray(handle reference, handle array, unsigned flags);
int cuTexRefGetArray(handle *array, handle reference);
int cuTexRefSetMaxAnisotropy(handle reference, unsigned most);
int cuTexRefGetMaxAnisotropy(int *most, handle reference);
int cuTexRefSetBorderColor(handle reference, float *color);
int cuTexRefGetBorderColor(float *color, handle reference);
int cuTexRefGetMipmappedArray(handle *array, handle reference);
int cuFuncSetBlockShape(handle function, int x, int y, int z);
int cuFuncSetSharedSize(handle function, unsigned bytes);
int cuParamSetSize(handle function, unsigned bytes);
int cuParamSeti(handle function, int offset, unsigned value);
int cuParamSetf(handle function, int offset, float value);
int cuParamSetv(handle function, int offset, void *value, unsigned bytes);
int cuParamSetTexRef(handle function, int unit, handle reference);
int cuLaunch(handle function);
int cuLaunchGrid(handle function, int width, int height);
int cuLaunchGridAsync(handle function, int width, int height, handle stream);
