/* Memory and semaphores of other interfaces. */
struct external_memory {
    int kind, padding;
    union {
        int file;
        unsigned long long words[2];
    } of;
    unsigned long long bytes;
    unsigned flags, reserved[16];
};
struct external_buffer {
    unsigned long long offset, bytes;
    unsigned flags, reserved[16];
};
struct external_semaphore {
    int kind, padding;
    union {
        int file;
        unsigned long long words[2];
    } of;
    unsigned flags, reserved[16];
};
/* What a semaphore is signalled with, or waited for with. */
struct semaphore_use {
    unsigned long long value, fence, key, more[6];
    unsigned flags, reserved[16];
};
_Static_assert(sizeof(struct external_memory) == 104 && sizeof(struct external_buffer) == 88, "sizes");
_Static_assert(sizeof(struct external_semaphore) == 96 && sizeof(struct semaphore_use) == 144, "sizes");
struct semaphore_node {
    handle *semaphores;
    const struct semaphore_use *uses;
    unsigned count;
};
enum { OPAQUE_FILE = 1, TIMELINE_FILE = 9 };
int cuImportExternalMemory(handle *memory, const struct external_memory *what);
int cuExternalMemoryGetMappedBuffer(address *out, handle memory, const struct external_buffer *part);
int cuExternalMemoryGetMappedMipmappedArray(handle *out, handle memory, const void *part);
int cuDestroyExternalMemory(handle memory);
int cuImportExternalSemaphore(handle *semaphore, const struct external_semaphore *what);
int cuSignalExternalSemaphoresAsync(const handle *semaphores, const struct semaphore_use *uses, unsigned count, handle stream);
int cuWaitExternalSemaphoresAsync(const handle *semaphores, const struct semaphore_use *uses, unsigned count, handle stream);
int cuDestroyExternalSemaphore(handle semaphore);
int cuGraphAddExternalSemaphoresSignalNode(handle *node, handle graph, const handle *after, size_t count, const struct semaphore_node *given);
int cuGraphAddExternalSemaphoresWaitNode(handle *node, handle graph, const handle *after, size_t count, const struct semaphore_node *given);
int cuGraphExternalSemaphoresSignalNodeGetParams(handle node, struct semaphore_node *out);
int cuGraphExternalSemaphoresWaitNodeGetParams(handle node, struct semaphore_node *out);

/* The structures CUmemAllocationProp and CUmemAccessDesc. */
struct physical {
    int kind, handle_types, location_kind, location;
    void *security;
    unsigned char flags[8];
};
int cuMemCreate(unsigned long long *memory, size_t bytes, const struct physical *what, unsigned long long flags);
int cuMemRelease(unsigned long long memory);
int cuMemExportToShareableHandle(void *out, unsigned long long memory, int kind, unsigned long long flags);
