/* Start, devices, contexts, and the plan of what goes wrong. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "fake.h"

#define NAMES 128

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct { char name[64]; int calls; } counts[NAMES];
static int initialised;
static Status faults[8], faults_to_come[8]; /* of each device */
static int retained[8];
static int reaches[8][8]; /* kernels of the first device may use memory of the second */
static __thread int current; /* the device whose context is current, plus one */

static int here(void) { return current ? current - 1 : 0; }

int number_from_environment(const char *name, int otherwise) {
    const char *text = getenv(name);
    return text && *text ? atoi(text) : otherwise;
}

static int count_call(const char *name) {
    for (int at = 0; at < NAMES; at++) {
        if (!counts[at].name[0]) snprintf(counts[at].name, sizeof counts[at].name, "%s", name);
        if (!strcmp(counts[at].name, name)) return ++counts[at].calls;
    }
    abort();
}

static Status planned(const char *name, int call) {
    const char *plan = getenv("FAKE_CUDA_PLAN");
    size_t length = strlen(name);
    while (plan && *plan) {
        if (!strncmp(plan, name, length) && plan[length] == '=') {
            char *rest;
            Status code = (Status)strtol(plan + length + 1, &rest, 10);
            if (*rest != '@' || atoi(rest + 1) == call) return code;
        }
        plan = strchr(plan, ',');
        if (plan) plan++;
    }
    return SUCCESS;
}

static int is_sticky(Status code) {
    return code == 214 || code == 700 || code == 702 || (code >= 714 && code <= 719);
}

static Status note(const char *name, const char *format, va_list arguments) {
    pthread_mutex_lock(&lock);
    Status code = planned(name, count_call(name));
    const char *path = getenv("FAKE_CUDA_LOG");
    FILE *log = path ? fopen(path, "a") : NULL;
    if (log) {
        char text[512];
        vsnprintf(text, sizeof text, format, arguments);
        fprintf(log, "%d %s %s\n", (int)getpid(), name, text);
        fclose(log);
    }
    if (is_sticky(code)) faults[here()] = code;
    pthread_mutex_unlock(&lock);
    return code;
}

Status enter(const char *name, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    Status code = note(name, format, arguments);
    va_end(arguments);
    return code;
}

Status enter_context(const char *name, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    Status code = note(name, format, arguments);
    va_end(arguments);
    if (code) return code;
    if (!initialised) return NOT_INITIALIZED;
    if (!current || !retained[current - 1]) return INVALID_CONTEXT;
    return faults[here()];
}

void lose(Status code) { faults_to_come[here()] = code; }

Status fault_on_look(void) {
    if (faults_to_come[here()]) faults[here()] = faults_to_come[here()];
    return faults[here()];
}

static int devices(void) { return number_from_environment("FAKE_CUDA_DEVICES", 1); }

Status cuInit(unsigned flags) {
    ENTER("%u", flags);
    initialised = 1;
    return SUCCESS;
}

Status cuDriverGetVersion(int *version) {
    *version = number_from_environment("FAKE_CUDA_VERSION", 13000);
    ENTER("%d", *version);
    return SUCCESS;
}

Status cuDeviceGetCount(int *count) {
    ENTER("");
    if (!initialised) return NOT_INITIALIZED;
    *count = devices();
    return SUCCESS;
}

Status cuDeviceGet(int *device, int ordinal) {
    ENTER("%d", ordinal);
    if (ordinal < 0 || ordinal >= devices()) return INVALID_DEVICE;
    *device = ordinal;
    return SUCCESS;
}

Status cuDeviceCanAccessPeer(int *can, int device, int peer) {
    ENTER("%d %d", device, peer);
    if (device < 0 || peer < 0 || device >= devices() || peer >= devices()) return INVALID_DEVICE;
    *can = device != peer && number_from_environment("FAKE_CUDA_PEERS", 1);
    return SUCCESS;
}

Status cuDeviceGetP2PAttribute(int *value, unsigned attribute, int device, int peer) {
    ENTER("%u %d %d", attribute, device, peer);
    if (attribute < 1 || attribute > 5) return INVALID_VALUE;
    *value = attribute == 2 && number_from_environment("FAKE_CUDA_PEERS", 1);
    return SUCCESS;
}

Status cuDeviceGetName(char *name, int length, int device) {
    ENTER("%d", device);
    snprintf(name, (size_t)length, "Fake %d", device);
    return SUCCESS;
}

static void uuid(unsigned char *bytes, int device) {
    for (int at = 0; at < 16; at++) bytes[at] = (unsigned char)(16 * device + at);
}

Status cuDeviceGetUuid_v2(unsigned char *bytes, int device) {
    ENTER("%d", device);
    uuid(bytes, device);
    return SUCCESS;
}

Status cuDeviceGetUuid(unsigned char *bytes, int device) {
    ENTER("%d", device);
    uuid(bytes, device == number_from_environment("FAKE_CUDA_MIG", -1) ? 15 : device);
    return SUCCESS;
}

Status cuDeviceTotalMem_v2(size_t *bytes, int device) {
    ENTER("%d", device);
    *bytes = DEVICE_BYTES;
    return SUCCESS;
}

Status cuDeviceGetAttribute(int *value, int attribute, int device) {
    ENTER("%d %d", attribute, device);
    if (device == number_from_environment("FAKE_CUDA_BROKEN", -1)) return UNKNOWN;
    switch (attribute) {
        case 1: case 2: case 3: *value = 1024; break;          /* block */
        case 4: *value = 64; break;
        case 5: *value = 2147483647; break;                    /* grid */
        case 6: case 7: *value = 65535; break;
        case 8: *value = STATIC_LIMIT_BYTES; break;            /* shared */
        case 9: *value = 65536; break;                         /* constant */
        case 10: *value = 32; break;                           /* warp */
        case 12: *value = 65536; break;                        /* registers */
        case 16: *value = MULTIPROCESSORS; break;
        case 31: *value = 1; break;                            /* concurrent kernels */
        case 33: *value = 3 + device; break;                   /* PCI */
        case 34: case 50: *value = 0; break;
        case 38: *value = 4 << 20; break;                      /* L2 */
        case 39: *value = 2048; break;
        case 75: *value = 9; break;                            /* capability */
        case 76: *value = 0; break;
        case 81: *value = 102400; break;
        case 97: *value = OPTIN_SHARED_BYTES; break;
        case 106: *value = 32; break;
        case 95: case 99: case 102: case 103: case 115: case 120: *value = 1; break; /* features */
        default: return INVALID_VALUE;
    }
    return SUCCESS;
}

Status cuDevicePrimaryCtxRetain(uintptr_t *context, int device) {
    ENTER("%d", device);
    if (!initialised) return NOT_INITIALIZED;
    if (faults[device]) return faults[device];
    retained[device]++;
    *context = 0xc0000 + (uintptr_t)device;
    return SUCCESS;
}

Status cuDevicePrimaryCtxRelease_v2(int device) {
    ENTER("%d", device);
    if (!retained[device]) return INVALID_CONTEXT;
    retained[device]--;
    return SUCCESS;
}

Status cuCtxGetCurrent(uintptr_t *context) {
    *context = current ? 0xc0000 + (uintptr_t)current - 1 : 0;
    return SUCCESS;
}

Status cuCtxSetCurrent(uintptr_t context) {
    ENTER("%lx", (unsigned long)context);
    current = context ? (int)(context - 0xc0000) + 1 : 0;
    return SUCCESS;
}

Status cuCtxEnablePeerAccess(uintptr_t peer, unsigned flags) {
    ENTER_CONTEXT("%lx %u", (unsigned long)peer, flags);
    int *reached = &reaches[current - 1][peer - 0xc0000];
    if (*reached) return 704;
    *reached = 1;
    return SUCCESS;
}

Status cuCtxDisablePeerAccess(uintptr_t peer) {
    ENTER_CONTEXT("%lx", (unsigned long)peer);
    int *reached = &reaches[current - 1][peer - 0xc0000];
    if (!*reached) return 705;
    *reached = 0;
    return SUCCESS;
}

Status cuCtxGetStreamPriorityRange(int *least, int *greatest) {
    ENTER_CONTEXT("");
    *least = 0;
    *greatest = -5;
    return fault_on_look();
}
