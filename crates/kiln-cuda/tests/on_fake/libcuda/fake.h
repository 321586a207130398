/* A libcuda for tests, without a device behind it.
 *
 * It keeps what kiln tells it and does the work at once, in host memory. What it answers can be planned:
 *
 *   FAKE_CUDA_PLAN     name=code,name=code@n   what a call answers, always or only the nth time
 *   FAKE_CUDA_VERSION  12040                   what cuDriverGetVersion says
 *   FAKE_CUDA_DEVICES  3                       how many devices there are
 *   FAKE_CUDA_BROKEN   1                       the device whose attributes cannot be read
 *   FAKE_CUDA_MIG      0                       the device that is a slice of another
 *   FAKE_CUDA_LOG      path                    a line for every call: process id, name, arguments in short
 *
 * A code that is sticky on CUDA stays: every later call in a context answers with it.
 */
#ifndef FAKE_H
#define FAKE_H

#include <stddef.h>
#include <stdint.h>

typedef int Status;
typedef uint64_t Address;

enum {
    SUCCESS = 0, INVALID_VALUE = 1, OUT_OF_MEMORY = 2, NOT_INITIALIZED = 3, STUB_LIBRARY = 34, NO_DEVICE = 100,
    INVALID_DEVICE = 101, INVALID_CONTEXT = 201, INVALID_PTX = 218, INVALID_HANDLE = 400, NOT_FOUND = 500,
    NOT_READY = 600, ILLEGAL_ADDRESS = 700, HOST_REGISTERED = 712, NOT_SUPPORTED = 801, UNKNOWN = 999,
};

#define DEVICE_BYTES (64ull << 20)
#define PAGE_GRANULARITY (2ull << 20)
/* The driver takes addresses from the system in blocks of this. */
#define ADDRESS_BLOCK (32ull << 20)
#define OPTIN_SHARED_BYTES 99000
#define STATIC_LIMIT_BYTES 49152
#define MULTIPROCESSORS 4
#define PARAMETERS 40 /* of a kernel; those behind them are not known */

/* Logs a call and returns what the plan says, or SUCCESS. */
Status enter(const char *name, const char *format, ...);
/* The same for calls that need a context: also NOT_INITIALIZED, INVALID_CONTEXT or the fault. */
Status enter_context(const char *name, const char *format, ...);
/* Loses the device: from the next look at it on, every call in a context answers with this code. */
void lose(Status code);
/* Whether the fault shows already; the first look makes it show. */
Status fault_on_look(void);
int number_from_environment(const char *name, int otherwise);

#define ENTER(...) do { Status planned = enter(__func__, __VA_ARGS__); if (planned) return planned; } while (0)
#define ENTER_CONTEXT(...) \
    do { Status planned = enter_context(__func__, __VA_ARGS__); if (planned) return planned; } while (0)

/* Streams and events. */
struct Stream { int stalled; int priority; };
struct Event { struct Stream *stream; int recorded; int timed; double at; };

/* Code. */
struct Function {
    char name[64];
    struct Module *module;
    size_t offsets[PARAMETERS], sizes[PARAMETERS];
    size_t parameters;
    int dynamic_shared_bytes;
};
struct Launch { unsigned grid[3], block[3], shared; };

/* Runs a kernel at once; the name says what it does. */
Status launch_kernel(struct Function *function, const struct Launch *launch, void **parameters, void **extra, struct Stream *stream);
Status run_kernel(struct Function *function, const struct Launch *launch, void **extra, struct Stream *stream);
/* Copies the packed arguments out of `extra`. */
size_t arguments_of(void **extra, unsigned char *into, size_t room);

#endif
