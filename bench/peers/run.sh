#!/bin/sh
# Builds and runs the peers that are written in C++, where they are installed, and writes what they measured: one JSON
# object a line. Peers that are not there are named with the reason and cost nothing.
#
#   run.sh [OUTPUT]        default: standard output
#
# Needs nvcc and a C++ compiler. PyTorch is found through python3, RMM through RMM_INCLUDE (directories separated by
# colons, with fmt, spdlog and CCCL where RMM needs them) and RMM_LIB, or through the Python package librmm.

set -u
here=$(cd "$(dirname "$0")" && pwd) || exit 1
built=$(mktemp -d) || exit 1
trap 'rm -rf "$built"' EXIT
[ -n "${1:-}" ] && exec > "$1"

absent() { echo "absent: $1"; }

# Compiles a program and runs it: build_and_run NAME FLAGS...
build_and_run() {
    name=$1
    shift
    if ! nvcc -O3 -std=c++20 -o "$built/$name" "$here/$name.cpp" "$here/spin.cu" -I "$here" "$@" > "$built/$name.log" 2>&1; then
        absent "$name does not compile here: $(grep -m 1 error "$built/$name.log" || tail -n 1 "$built/$name.log")"
        return
    fi
    "$built/$name" || absent "$name ended with $?"
}

if ! command -v nvcc > /dev/null; then
    for place in "${CUDA_HOME:-}" "${CUDA_PATH:-}" /usr/local/cuda; do
        [ -x "$place/bin/nvcc" ] && PATH=$place/bin:$PATH && break
    done
fi
if ! command -v nvcc > /dev/null; then
    absent "the peers in C++: there is no nvcc"
    exit 0
fi

torch=$(python3 -c 'import os, torch; print(os.path.dirname(torch.__file__))' 2> /dev/null)
if [ -n "$torch" ]; then
    # The allocator asks hooks that the large library sets when it is loaded, so it is linked though nothing names it.
    abi=$(python3 -c 'import torch; print(int(torch._C._GLIBCXX_USE_CXX11_ABI))')
    build_and_run torch -I "$torch/include" -I "$torch/include/torch/csrc/api/include" -D_GLIBCXX_USE_CXX11_ABI="$abi" \
        -L "$torch/lib" -lc10_cuda -lc10 -lcudart -Xlinker --no-as-needed -ltorch_cuda -ltorch -Xlinker -rpath -Xlinker "$torch/lib"
else
    absent "PyTorch: python3 finds no module torch"
fi

if [ -z "${RMM_INCLUDE:-}" ]; then
    librmm=$(python3 -c 'import os, librmm; print(os.path.dirname(librmm.__file__))' 2> /dev/null)
    if [ -n "$librmm" ]; then
        RMM_INCLUDE=$librmm/include:$librmm/include/rapids
        RMM_LIB=$librmm/lib64
    fi
fi
if [ -n "${RMM_INCLUDE:-}" ]; then
    includes=$(echo "$RMM_INCLUDE" | tr ':' '\n' | sed 's/^/-I /' | tr '\n' ' ')
    libraries=
    [ -n "${RMM_LIB:-}" ] && libraries="-L $RMM_LIB -lrmm -Xlinker -rpath -Xlinker $RMM_LIB"
    # Lists of flags, split at their blanks on purpose.
    # shellcheck disable=SC2086
    build_and_run rmm -DLIBCUDACXX_ENABLE_EXPERIMENTAL_MEMORY_RESOURCE $includes $libraries
else
    absent "RMM: no RMM_INCLUDE and no Python package librmm"
fi
