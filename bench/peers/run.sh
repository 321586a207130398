#!/bin/sh
# Builds and runs the peers that are no part of kiln-bench, where they are installed, and writes what they measured: one JSON
# object a line. Peers that are not there are named with the reason and cost nothing.
#
#   run.sh [OUTPUT]        default: standard output
#
# CubeCL and cudarc are programs in separate packages: built already in a bundle, built by cargo in a checkout. CubeCL compiles its
# kernels with NVRTC, cudarc loads cuBLASLt.
# The others need nvcc and a C++ compiler. PyTorch is found through python3. RMM (26.10 or newer) is found through RMM_INCLUDE
# (directories separated by colons, with CCCL and rapids_logger) and RMM_LIB (directories likewise), through the Python
# packages librmm and rapids_logger, or in the packages beside this script, which python3 unpacks.

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

# A peer in Rust: run_package DIRECTORY NAME.
run_package() {
    program=kiln-bench-$1
    if [ -x "$here/../bin/$program" ]; then
        "$here/../bin/$program" || absent "$2: it ended with $?"
    elif [ -f "$here/../$1/Cargo.toml" ] && command -v cargo > /dev/null; then
        cargo run --release --quiet --locked --manifest-path "$here/../$1/Cargo.toml" --target-dir "$here/../../target/$program" ||
            absent "$2: it ended with $?"
    else
        absent "$2: neither its program nor cargo is here"
    fi
}

run_package cubecl CubeCL
run_package cudarc cudarc

if ! command -v nvcc > /dev/null; then
    for place in "${CUDA_HOME:-}" "${CUDA_PATH:-}" /usr/local/cuda; do
        [ -x "$place/bin/nvcc" ] && PATH=$place/bin:$PATH && break
    done
fi
if ! command -v nvcc > /dev/null; then
    absent "the peers in C++: there is no nvcc"
    exit 0
fi

# CUB comes with the toolkit.
if nvcc -O3 -std=c++17 -arch=native -o "$built/cub" "$here/cub.cu" > "$built/cub.log" 2>&1; then
    "$built/cub" || absent "CUB ended with $?"
else
    absent "CUB does not compile here: $(grep -m 1 error "$built/cub.log" || tail -n 1 "$built/cub.log")"
fi

# So does cuBLASLt.
if nvcc -O3 -std=c++17 -arch=native -o "$built/matmul" "$here/matmul.cu" -lcublasLt > "$built/matmul.log" 2>&1; then
    "$built/matmul" || absent "cuBLASLt ended with $?"
else
    absent "cuBLASLt: $(grep -m 1 error "$built/matmul.log" || tail -n 1 "$built/matmul.log")"
fi

torch=$(python3 -c 'import os, torch; print(os.path.dirname(torch.__file__))' 2> /dev/null)
if [ -n "$torch" ]; then
    python3 "$here/matmul.py" || absent "the products of PyTorch ended with $?"
    python3 "$here/attention.py" || absent "the attention of PyTorch ended with $?"
    # The allocator asks hooks that the large library sets when it is loaded, so it is linked though nothing names it.
    abi=$(python3 -c 'import torch; print(int(torch._C._GLIBCXX_USE_CXX11_ABI))')
    build_and_run torch -I "$torch/include" -I "$torch/include/torch/csrc/api/include" -D_GLIBCXX_USE_CXX11_ABI="$abi" \
        -L "$torch/lib" -lc10_cuda -lc10 -lcudart -Xlinker --no-as-needed -ltorch_cuda -ltorch -Xlinker -rpath -Xlinker "$torch/lib"
else
    absent "PyTorch: python3 finds no module torch"
fi

# Sets RMM_INCLUDE and RMM_LIB from packages below a directory: name_rmm DIRECTORY.
name_rmm() {
    RMM_INCLUDE=$1/librmm/include:$1/librmm/include/rapids:$1/rapids_logger/include
    RMM_LIB=$1/librmm/lib64:$1/rapids_logger/lib64
}

if [ -z "${RMM_INCLUDE:-}" ]; then
    packages=$(python3 -c 'import os, librmm, rapids_logger; print(os.path.dirname(os.path.dirname(librmm.__file__)))' 2> /dev/null)
    if [ -n "$packages" ]; then
        name_rmm "$packages"
    elif [ -d "$here/wheels" ]; then
        # A package file is a zip archive; the directory goes when this script ends.
        for wheel in "$here"/wheels/*.whl; do
            python3 -m zipfile -e "$wheel" "$built/packages" || absent "$(basename "$wheel") does not unpack"
        done
        name_rmm "$built/packages"
    fi
fi
if [ -n "${RMM_INCLUDE:-}" ]; then
    # RMM's headers before the toolkit's: they come with the CCCL they were written for, which may be newer.
    includes=$(echo "$RMM_INCLUDE" | tr ':' '\n' | sed 's/^/-I /' | tr '\n' ' ')
    libraries=$(echo "${RMM_LIB:-}" | tr ':' '\n' | sed -n 's/^..*$/-L & -Xlinker -rpath -Xlinker &/p' | tr '\n' ' ')
    # What librmm needs in turn is not found through a program's own path.
    export LD_LIBRARY_PATH="${RMM_LIB:-}:${LD_LIBRARY_PATH:-}"
    # Lists of flags, split at their blanks on purpose.
    # shellcheck disable=SC2086
    build_and_run rmm $includes $libraries -lrmm -lrapids_logger
else
    absent "RMM: no RMM_INCLUDE, no Python packages librmm and rapids_logger, and none beside this script"
fi
