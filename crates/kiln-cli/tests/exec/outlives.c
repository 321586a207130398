/* A program that leaves a process behind, which makes a mistake when the program is gone; the first argument is how many tenths of a second later. */
#include "driver_api.h"

int main(int count, char **words) {
    address p;
    int wait = count > 1 ? atoi(words[1]) : 1;
    if (fork() != 0) return 3;
    /* A reader of the output does not wait for this process. */
    setsid();
    for (int file = 0; file < 3; file++) close(file);
    begin();
    OK(cuMemAlloc_v2(&p, 256));
    for (; wait > 0; wait--) usleep(100000);
    OK(launch(add_one(), p, 65, NULL));
    return cuCtxSynchronize() == 0;
}
