/* The first calls of NVML, looked up as programs do; with "with driver" what it tells is compared with the driver API. */
#include "driver_api.h"

#include <dlfcn.h>

typedef int (*any)();

static void *library;

static any function(const char *name) {
    any found = (any)dlsym(library, name);
    if (!found) {
        fprintf(stderr, "%s is not there\n", name);
        exit(1);
    }
    return found;
}

#define NVML(name) function("nvml" #name)

struct memory {
    unsigned long long total, free, used;
};
struct memory_2 {
    unsigned version;
    unsigned long long total, reserved, free, used;
};
struct pci {
    char legacy[16];
    unsigned domain, bus, device, device_id, subsystem;
    char id[32];
};
struct process {
    unsigned process;
    unsigned long long used;
    unsigned one, two;
};

int main(int count, char **which) {
    unsigned devices = 9, index = 9, room = 0, utilization[2] = {9, 9};
    void *device = NULL, *same = NULL;
    char text[96], uuid[96];
    int version = 0, major = 0, minor = 0;
    struct memory memory;
    struct memory_2 second = {.version = 1};
    struct pci pci;
    struct process processes[2];
    library = dlopen("libnvidia-ml.so.1", RTLD_NOW);
    TRUE(library != NULL);
    /* Before it is initialised. */
    WANT(1, NVML(DeviceGetCount_v2)(&devices));
    WANT(1, NVML(Shutdown)());
    OK(NVML(Init_v2)());
    OK(NVML(Init)());
    OK(NVML(Shutdown)());
    OK(NVML(DeviceGetCount_v2)(&devices));
    TRUE(devices == 2);
    /* NVML is there without cuInit, and does not take its place. */
    int driver_count;
    WANT(3, cuDeviceGetCount(&driver_count));
    OK(NVML(SystemGetDriverVersion)(text, 80));
    TRUE(!strncmp(text, "580", 3));
    WANT(7, NVML(SystemGetDriverVersion)(text, 2));
    OK(NVML(SystemGetNVMLVersion)(text, 80));
    OK(NVML(SystemGetCudaDriverVersion)(&version));
    TRUE(version == 13000);
    WANT(2, NVML(DeviceGetHandleByIndex_v2)(2, &device));
    WANT(2, NVML(DeviceGetHandleByIndex_v2)(0, NULL));
    OK(NVML(DeviceGetHandleByIndex_v2)(1, &device));
    OK(NVML(DeviceGetIndex)(device, &index));
    TRUE(index == 1);
    OK(NVML(DeviceGetUUID)(device, uuid, 96));
    OK(NVML(DeviceGetHandleByUUID)(uuid, &same));
    TRUE(same == device);
    WANT(6, NVML(DeviceGetHandleByUUID)("GPU-00000000-0000-0000-0000-00000000ffff", &same));
    OK(NVML(DeviceGetPciInfo_v3)(device, &pci));
    OK(NVML(DeviceGetHandleByPciBusId_v2)(pci.id, &same));
    TRUE(same == device);
    OK(NVML(DeviceGetHandleByPciBusId_v2)(pci.legacy, &same));
    TRUE(same == device);
    WANT(2, NVML(DeviceGetHandleByPciBusId_v2)("nowhere", &same));
    WANT(6, NVML(DeviceGetHandleByPciBusId_v2)("ffff:ff:1f.0", &same));
    OK(NVML(DeviceGetName)(device, text, 96));
    OK(NVML(DeviceGetCudaComputeCapability)(device, &major, &minor));
    OK(NVML(DeviceGetMemoryInfo)(device, &memory));
    TRUE(memory.total > 0 && memory.used + memory.free == memory.total);
    WANT(25, NVML(DeviceGetMemoryInfo_v2)(device, &second));
    second.version = sizeof second | 2 << 24;
    OK(NVML(DeviceGetMemoryInfo_v2)(device, &second));
    TRUE(second.total == memory.total && second.free == memory.free);
    OK(NVML(DeviceGetUtilizationRates)(device, utilization));
    TRUE(utilization[0] == 0);
    OK(NVML(DeviceGetComputeRunningProcesses_v3)(device, &room, NULL));
    TRUE(room == 0);
    WANT(3, NVML(DeviceGetTemperature)(device, 0, &index));
    WANT(3, NVML(DeviceGetPowerUsage)(device, &index));
    WANT(2, NVML(DeviceGetPowerUsage)(NULL, &index));
    WANT(2, NVML(DeviceGetName)((void *)16, text, 96));
    const char *(*error)(int) = (const char *(*)(int))NVML(ErrorString);
    TRUE(!strcmp(error(3), "Not Supported") && error(12345) != NULL);

    if (count > 1 && !strcmp(which[1], "with driver")) {
        handle context;
        address p;
        size_t free, total;
        char name[96], bytes[16], id[32], hex[3];
        OK(cuInit(0));
        OK(cuDeviceGetCount(&driver_count));
        TRUE(driver_count == 2);
        OK(cuDevicePrimaryCtxRetain(&context, 1));
        OK(cuCtxSetCurrent(context));
        OK(cuDeviceGetName(name, sizeof name, 1));
        TRUE(!strcmp(name, text));
        OK(cuDeviceGetUuid_v2(bytes, 1));
        snprintf(hex, sizeof hex, "%02x", (unsigned char)bytes[15]);
        TRUE(!strcmp(uuid + strlen(uuid) - 2, hex));
        OK(cuDeviceGetPCIBusId(id, sizeof id, 1));
        TRUE(!strcasecmp(id, pci.legacy));
        OK(cuMemAlloc_v2(&p, 1 << 20));
        OK(cuMemGetInfo_v2(&free, &total));
        OK(NVML(DeviceGetMemoryInfo)(device, &memory));
        TRUE(memory.free == free && memory.total == total && memory.used >= 1 << 20);
        room = 0;
        WANT(7, NVML(DeviceGetComputeRunningProcesses_v3)(device, &room, NULL));
        TRUE(room == 1);
        room = 2;
        OK(NVML(DeviceGetComputeRunningProcesses_v3)(device, &room, processes));
        TRUE(room == 1 && processes[0].process == (unsigned)getpid() && processes[0].used >= 1 << 20);
        int a, b;
        OK(cuDeviceComputeCapability(&a, &b, 1));
        TRUE(a == major && b == minor);
    }
    OK(NVML(Shutdown)());
    WANT(1, NVML(DeviceGetCount)(&devices));
    return 0;
}
