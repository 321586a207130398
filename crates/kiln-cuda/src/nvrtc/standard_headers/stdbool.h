// `bool`, `true` and `false` are words of C++.
#pragma once
#define __bool_true_false_are_defined 1
