// `printf` is built into NVRTC; no other function of this header exists in device code.
#pragma once
#include <stddef.h>
#ifndef EOF
#define EOF (-1)
#endif
