/* Memory and semaphores of other interfaces. */
#include "answers.h"

#include "../sharing.h"

#include <sys/eventfd.h>
#include <sys/mman.h>

enum { BYTES = 2 << 20 };

/* A call that takes a file over if it works, with a copy of the file. */
static int import_memory(handle *memory, int kind, int file, unsigned long long bytes, unsigned flags) {
    struct external_memory what = {.kind = kind, .of.file = file < 0 ? file : dup(file), .bytes = bytes, .flags = flags};
    return cuImportExternalMemory(memory, &what);
}

static int import_semaphore(handle *semaphore, int kind, int file, unsigned flags) {
    struct external_semaphore what = {.kind = kind, .of.file = file < 0 ? file : dup(file), .flags = flags};
    return cuImportExternalSemaphore(semaphore, &what);
}

/* What a file of physical memory of a device is as memory of another interface. */
void external_memory_of_the_device(void) {
    unsigned long long physical = 0;
    handle memory = NULL;
    address p = 0, again = 0, other = 0;
    int file = -1;
    unsigned back[4] = {0};
    struct physical what = {1, 1, 1, 0, NULL, {0}};
    begin();
    NEED(cuMemCreate(&physical, BYTES, &what, 0));
    NEED(cuMemExportToShareableHandle(&file, physical, 1, 0));
    NAMED("too many bytes", import_memory(&memory, OPAQUE_FILE, file, 2 * BYTES, 0));
    NAMED("no bytes", import_memory(&memory, OPAQUE_FILE, file, 0, 0));
    NAMED("another flag", import_memory(&memory, OPAQUE_FILE, file, BYTES, 8));
    int imported = import_memory(&memory, OPAQUE_FILE, file, BYTES, 0);
    answer("physical memory", imported);
    if (imported) return;
    struct external_buffer part = {.offset = 0, .bytes = BYTES};
    NAMED("all of it", cuExternalMemoryGetMappedBuffer(&p, memory, &part));
    NAMED("all of it again", cuExternalMemoryGetMappedBuffer(&again, memory, &part));
    part.offset = 4096, part.bytes = 4096;
    NAMED("a part", cuExternalMemoryGetMappedBuffer(&other, memory, &part));
    part.offset = BYTES;
    NAMED("a part behind it", cuExternalMemoryGetMappedBuffer(&other, memory, &part));
    part.offset = 0, part.bytes = 0;
    NAMED("no part", cuExternalMemoryGetMappedBuffer(&other, memory, &part));
    part.bytes = 4096, part.flags = 1;
    NAMED("a part with a flag", cuExternalMemoryGetMappedBuffer(&other, memory, &part));
    NAMED("filled", cuMemsetD32_v2(p, 7, 64));
    NAMED("read by the other address", cuMemcpyDtoH_v2(back, again, 16));
    value("what was filled", back[3]);
    NAMED("the memory destroyed", cuDestroyExternalMemory(memory));
    NAMED("the address then", cuMemcpyDtoH_v2(back, p, 16));
    NAMED("the address freed", cuMemFree_v2(p));
    NAMED("destroyed again", cuDestroyExternalMemory(memory));
    CODE(cuMemRelease(physical));
}

void external_memory(void) {
    handle memory = NULL, array = NULL;
    address p = 0;
    struct external_buffer part = {.bytes = 4096};
    int file = memfd_create("shared", 0), event = eventfd(0, 0);
    begin();
    NEED(ftruncate(file, BYTES));
    CODE(cuImportExternalMemory(NULL, NULL));
    CODE(cuImportExternalMemory(&memory, NULL));
    NAMED("no place for it", import_memory(NULL, OPAQUE_FILE, file, BYTES, 0));
    NAMED("no kind", import_memory(&memory, 0, file, BYTES, 0));
    NAMED("a kind of another system", import_memory(&memory, 2, file, BYTES, 0));
    NAMED("a kind beyond all", import_memory(&memory, 99, file, BYTES, 0));
    NAMED("no file", import_memory(&memory, OPAQUE_FILE, -1, BYTES, 0));
    NAMED("a closed file", import_memory(&memory, OPAQUE_FILE, 999, BYTES, 0));
    NAMED("no bytes", import_memory(&memory, OPAQUE_FILE, file, 0, 0));
    NAMED("memory of the system", import_memory(&memory, OPAQUE_FILE, file, BYTES, 0));
    NAMED("memory of the system, dedicated", import_memory(&memory, OPAQUE_FILE, file, BYTES, 1));
    NAMED("an event of the system", import_memory(&memory, OPAQUE_FILE, event, BYTES, 0));
    CODE(cuExternalMemoryGetMappedBuffer(&p, NULL, &part));
    CODE(cuExternalMemoryGetMappedBuffer(&p, NULL, NULL));
    CODE(cuExternalMemoryGetMappedMipmappedArray(&array, NULL, NULL));
    CODE(cuDestroyExternalMemory(NULL));
}

void external_semaphores(void) {
    handle semaphore = NULL, stream = NULL, graph = NULL, node = NULL;
    struct semaphore_use use = {0};
    int file = memfd_create("shared", 0), event = eventfd(0, 0);
    begin();
    NEED(cuStreamCreate(&stream, 1));
    NEED(cuGraphCreate(&graph, 0));
    CODE(cuImportExternalSemaphore(NULL, NULL));
    CODE(cuImportExternalSemaphore(&semaphore, NULL));
    NAMED("no place for it", import_semaphore(NULL, OPAQUE_FILE, event, 0));
    NAMED("no kind", import_semaphore(&semaphore, 0, event, 0));
    NAMED("a kind of another system", import_semaphore(&semaphore, 2, event, 0));
    NAMED("a kind beyond all", import_semaphore(&semaphore, 99, event, 0));
    NAMED("no file", import_semaphore(&semaphore, OPAQUE_FILE, -1, 0));
    NAMED("an event of the system", import_semaphore(&semaphore, OPAQUE_FILE, event, 0));
    NAMED("a timeline of an event", import_semaphore(&semaphore, TIMELINE_FILE, event, 0));
    NAMED("memory of the system", import_semaphore(&semaphore, OPAQUE_FILE, file, 0));
    NAMED("a flag", import_semaphore(&semaphore, OPAQUE_FILE, event, 1));
    semaphore = NULL;
    CODE(cuSignalExternalSemaphoresAsync(NULL, NULL, 0, stream));
    CODE(cuSignalExternalSemaphoresAsync(NULL, &use, 1, stream));
    CODE(cuSignalExternalSemaphoresAsync(&semaphore, NULL, 1, stream));
    CODE(cuSignalExternalSemaphoresAsync(&semaphore, &use, 1, stream));
    CODE(cuSignalExternalSemaphoresAsync(&semaphore, &use, 0, stream));
    CODE(cuWaitExternalSemaphoresAsync(NULL, NULL, 0, stream));
    CODE(cuWaitExternalSemaphoresAsync(NULL, &use, 1, stream));
    CODE(cuWaitExternalSemaphoresAsync(&semaphore, &use, 1, stream));
    CODE(cuDestroyExternalSemaphore(NULL));
    struct semaphore_node given = {NULL, NULL, 0};
    CODE(cuGraphAddExternalSemaphoresSignalNode(&node, graph, NULL, 0, NULL));
    NAMED("a node for no semaphore", cuGraphAddExternalSemaphoresSignalNode(&node, graph, NULL, 0, &given));
    NAMED("a node that waits for no semaphore", cuGraphAddExternalSemaphoresWaitNode(&node, graph, NULL, 0, &given));
    given = (struct semaphore_node){&semaphore, &use, 1};
    NAMED("a node for a null semaphore", cuGraphAddExternalSemaphoresSignalNode(&node, graph, NULL, 0, &given));
    NAMED("a node that waits for a null semaphore", cuGraphAddExternalSemaphoresWaitNode(&node, graph, NULL, 0, &given));
    CODE(cuGraphExternalSemaphoresSignalNodeGetParams(NULL, &given));
    CODE(cuGraphExternalSemaphoresWaitNodeGetParams(NULL, &given));
}
