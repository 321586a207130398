// `malloc`, `free`, `abs`, `labs` and `llabs` are built into NVRTC; no other function of this header exists in device code.
#pragma once
#include <stddef.h>
#ifndef EXIT_SUCCESS
#define EXIT_SUCCESS 0
#define EXIT_FAILURE 1
#endif
