/* Values in memory that streams write and wait for, and memory and events of other processes. */
union operation {
    int kind;
    struct {
        int kind;
        address at;
        unsigned long long value;
        unsigned flags;
        address alias;
    } value;
    struct {
        int kind;
        unsigned flags;
    } other;
    unsigned long long room[6];
};
enum { WAIT_32 = 1, WRITE_32 = 2, FLUSH_WRITES = 3, WAIT_64 = 4, WRITE_64 = 5, BARRIER = 6 };
enum { GEQ = 0, EQ = 1, AND = 2, NOR = 3, FLUSH = 1 << 30 };
int cuStreamWaitValue32(handle stream, address at, unsigned value, unsigned flags);
int cuStreamWaitValue32_v2(handle stream, address at, unsigned value, unsigned flags);
int cuStreamWaitValue64(handle stream, address at, unsigned long long value, unsigned flags);
int cuStreamWaitValue64_v2(handle stream, address at, unsigned long long value, unsigned flags);
int cuStreamWriteValue32(handle stream, address at, unsigned value, unsigned flags);
int cuStreamWriteValue32_v2(handle stream, address at, unsigned value, unsigned flags);
int cuStreamWriteValue64(handle stream, address at, unsigned long long value, unsigned flags);
int cuStreamWriteValue64_v2(handle stream, address at, unsigned long long value, unsigned flags);
int cuStreamBatchMemOp(handle stream, unsigned count, union operation *operations, unsigned flags);
int cuStreamBatchMemOp_v2(handle stream, unsigned count, union operation *operations, unsigned flags);

struct shared {
    char bytes[64];
};
int cuIpcGetMemHandle(struct shared *out, address start);
int cuIpcOpenMemHandle_v2(address *out, struct shared shared, unsigned flags);
int cuIpcCloseMemHandle(address start);
int cuIpcGetEventHandle(struct shared *out, handle event);
int cuIpcOpenEventHandle(handle *out, struct shared shared);
