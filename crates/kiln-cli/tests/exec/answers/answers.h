/* A program that calls the CUDA driver API and prints what each call answered, a line each: its name, its code, and
 * values where every device of a kind has the same. A call that crashes has the code -1. The lines of NVIDIA's library on an H200 are kept in `h200.txt`.
 *
 * Every section is a process of its own, so that one that faults or is killed leaves the others alone. */
#include "../driver_api.h"

#include <setjmp.h>

typedef void (*section)(void);

extern const char *section_name;

/* Prints the code of a call. */
void answer(const char *name, int code);
/* Where a call that crashes goes on. */
extern sigjmp_buf crashed;
/* Prints a value. */
void value(const char *name, long long number);
/* Prints a text. */
void words(const char *name, const char *text);

/* The name of a case is its call as it is written. */
#define CODE(call) NAMED(#call, call)
/* A call that has a name of its own, for those in a loop or with another meaning than before. */
#define NAMED(name, call)                      \
    do {                                       \
        if (sigsetjmp(crashed, 1) == 0)        \
            answer(name, (call));              \
        else                                   \
            answer(name, -1);                  \
    } while (0)
/* A call that must work for the rest to have a meaning. */
#define NEED(call)                                                        \
    do {                                                                  \
        int needed = (call);                                              \
        if (needed != 0) {                                                \
            printf("%s: %s failed with %d\n", section_name, #call, needed); \
            fflush(stdout);                                               \
            _exit(9);                                                     \
        }                                                                 \
    } while (0)

void before_init(void);
void no_context(void);
void error_names(void);
void devices(void);
void attributes(void);
void contexts(void);
void primary_contexts(void);
void context_limits(void);
void allocations(void);
void host_memory(void);
void pointers(void);
void pools(void);
void copies(void);
void copies_of_rows(void);
void fills(void);
void streams(void);
void destroyed_stream(void);
void events(void);
void destroyed_event(void);
void modules(void);
void unloaded_module(void);
void functions(void);
void launches(void);
void launch_attributes(void);
void host_functions(void);
void captures(void);
void graphs(void);
void links(void);
void libraries(void);
void occupancy(void);
void entry_points(void);
void short_addresses(void);
void stream_values(void);
void stream_batches(void);
void interprocess(void);
void arrays(void);
void array_copies(void);
void textures(void);
void graph_events(void);
void graph_memory(void);
void graph_values(void);
void conditions(void);
void condition_bodies(void);
void condition_body_destroyed(void);
void condition_alone(void);
void condition_runs(void);
void condition_default_in_body(void);
void external_memory(void);
void external_memory_of_the_device(void);
void external_semaphores(void);
void copy_batches(void);
void stream_attributes(void);
void memory_ranges(void);
void context_events(void);
void texture_references(void);
void first_launches(void);
void fault_address(void);
void fault_trap(void);
void fault_misaligned(void);
void fault_assert(void);
