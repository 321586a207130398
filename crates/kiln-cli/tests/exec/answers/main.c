/* Runs the sections one after the other. */
#include "answers.h"

#include <signal.h>
#include <sys/wait.h>

const char *section_name = "";
sigjmp_buf crashed;

static void crash(int signal) {
    (void)signal;
    siglongjmp(crashed, 1);
}

void answer(const char *name, int code) {
    printf("%s: %s: %d\n", section_name, name, code);
    fflush(stdout);
}

void value(const char *name, long long number) {
    printf("%s: %s = %lld\n", section_name, name, number);
    fflush(stdout);
}

void words(const char *name, const char *text) {
    printf("%s: %s = %s\n", section_name, name, text);
    fflush(stdout);
}

#define SECTION(function) {#function, function}

static const struct {
    const char *name;
    section run;
} SECTIONS[] = {
    SECTION(before_init),      SECTION(no_context),       SECTION(error_names),   SECTION(devices),
    SECTION(attributes),       SECTION(contexts),         SECTION(primary_contexts), SECTION(context_limits),
    SECTION(allocations),      SECTION(host_memory),      SECTION(pointers),      SECTION(pools),
    SECTION(copies),           SECTION(copies_of_rows),   SECTION(fills),         SECTION(streams),
    SECTION(destroyed_stream), SECTION(events),           SECTION(destroyed_event), SECTION(modules),
    SECTION(unloaded_module),  SECTION(functions),        SECTION(launches),      SECTION(launch_attributes),
    SECTION(host_functions),   SECTION(captures),         SECTION(graphs),        SECTION(links),            SECTION(libraries),     SECTION(occupancy),
    SECTION(stream_values),    SECTION(stream_batches),   SECTION(interprocess),  SECTION(graph_events),
    SECTION(graph_memory),     SECTION(graph_values),     SECTION(arrays),        SECTION(array_copies),
    SECTION(textures),
    SECTION(conditions),       SECTION(condition_bodies), SECTION(condition_body_destroyed), SECTION(condition_alone),
    SECTION(condition_runs),   SECTION(condition_default_in_body),
    SECTION(external_memory),  SECTION(external_memory_of_the_device), SECTION(external_semaphores),
    SECTION(copy_batches),     SECTION(stream_attributes), SECTION(memory_ranges), SECTION(context_events),
    SECTION(texture_references), SECTION(first_launches),
    SECTION(entry_points),     SECTION(short_addresses),  SECTION(fault_address),    SECTION(fault_trap),    SECTION(fault_misaligned),
    SECTION(fault_assert),
};

int main(int count, char **arguments) {
    for (unsigned i = 0; i < sizeof SECTIONS / sizeof *SECTIONS; i++) {
        if (count > 1 && strcmp(arguments[1], SECTIONS[i].name)) continue;
        int status = 0;
        pid_t child = fork();
        if (child == 0) {
            section_name = SECTIONS[i].name;
            alarm(20);
            signal(SIGSEGV, crash);
            signal(SIGBUS, crash);
            signal(SIGFPE, crash);
            SECTIONS[i].run();
            fflush(stdout);
            _exit(0);
        }
        if (child < 0 || waitpid(child, &status, 0) != child) return 1;
        if (status != 0) {
            int signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
            printf("%s: ended with code %d, signal %d\n", SECTIONS[i].name, WEXITSTATUS(status), signal);
            fflush(stdout);
        }
    }
    return 0;
}
