/* Capture, which only some machines have. The stand-ins for libraries queue nothing, so that what is captured is a graph without nodes. */
#include "fake.h"

struct Graph;
Status cuGraphCreate(struct Graph **graph, unsigned flags);

Status cuStreamBeginCapture_v2(struct Stream *stream, int mode) {
    ENTER_CONTEXT("%d", mode);
    return SUCCESS;
}

Status cuStreamEndCapture(struct Stream *stream, struct Graph **graph) {
    ENTER_CONTEXT(" ");
    return cuGraphCreate(graph, 0);
}
