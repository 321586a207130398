/* Copies, fills and frees at addresses that are refused, by a program that does not look at codes; the first argument says which. */
#include "driver_api.h"

int main(int count, char **words) {
    const char *which = count > 1 ? words[1] : "";
    unsigned word = 0;
    address p;
    begin();
    (void)add_one;
    (void)launch;
    OK(cuMemAlloc_v2(&p, 1024));
    OK(cuMemsetD8_v2(p, 0, 1024));
    if (!strcmp(which, "past the end")) {
        WANT(1, cuMemcpyHtoD_v2(p + 1022, &word, 4));
    } else if (!strcmp(which, "fill")) {
        WANT(1, cuMemsetD8_v2(p, 0, 1025));
    } else if (!strcmp(which, "after the free")) {
        OK(cuMemFree_v2(p));
        WANT(1, cuMemcpyDtoH_v2(&word, p + 8, 4));
    } else if (!strcmp(which, "twice")) {
        OK(cuMemFree_v2(p));
        WANT(1, cuMemFree_v2(p));
    } else if (!strcmp(which, "inside")) {
        WANT(1, cuMemFree_v2(p + 16));
    } else if (!strcmp(which, "overlap")) {
        WANT(1, cuMemcpyDtoD_v2(p + 16, p, 64));
    } else if (!strcmp(which, "wild")) {
        WANT(1, cuMemcpyDtoH_v2(&word, 0x1234, 4));
    }
    return 0;
}
