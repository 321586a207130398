/* The functions of virtual memory management. */
struct location {
    int kind, number;
};
struct properties {
    int kind, handle_types;
    struct location location;
    void *security;
    unsigned char flags[8];
};
struct access {
    struct location location;
    int flags;
};
int cuMemGetAllocationGranularity(size_t *bytes, const struct properties *properties, int option);
int cuMemAddressReserve(address *out, size_t bytes, size_t alignment, address wanted, unsigned long long flags);
int cuMemAddressFree(address start, size_t bytes);
int cuMemCreate(unsigned long long *memory, size_t bytes, const struct properties *properties, unsigned long long flags);
int cuMemRelease(unsigned long long memory);
int cuMemMap(address start, size_t bytes, size_t offset, unsigned long long memory, unsigned long long flags);
int cuMemUnmap(address start, size_t bytes);
int cuMemSetAccess(address start, size_t bytes, const struct access *access, size_t count);
int cuMemGetAccess(unsigned long long *flags, const struct location *location, address start);
int cuMemGetAllocationPropertiesFromHandle(struct properties *properties, unsigned long long memory);
int cuMemRetainAllocationHandle(unsigned long long *memory, void *start);
int cuMemExportToShareableHandle(void *out, unsigned long long memory, int kind, unsigned long long flags);
int cuMemImportFromShareableHandle(unsigned long long *memory, void *shared, int kind);
