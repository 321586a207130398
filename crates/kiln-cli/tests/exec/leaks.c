/* A program that ends with a library and a link; the first argument says which, or that all is given back. */
#include "driver_api.h"

int main(int count, char **words) {
    const char *which = count > 1 ? words[1] : "";
    handle library, kernel, function, link;
    begin();
    (void)add_one;
    (void)launch;
    OK(cuLibraryLoadData(&library, ADD_ONE, NULL, NULL, 0, NULL, NULL, 0));
    OK(cuLibraryGetKernel(&kernel, library, "add_one"));
    OK(cuKernelGetFunction(&function, kernel));
    OK(cuLinkCreate_v2(0, NULL, NULL, &link));
    if (strcmp(which, "library")) OK(cuLibraryUnload(library));
    if (strcmp(which, "link")) OK(cuLinkDestroy(link));
    return 0;
}
