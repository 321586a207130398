// `memcpy` and `memset` are built into NVRTC; no other function of this header exists in device code.
#pragma once
#include <stddef.h>
