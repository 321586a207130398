// `assert` is built into NVRTC.
#pragma once
#ifndef static_assert
#define _Static_assert static_assert
#endif
