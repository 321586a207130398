"""Executes the kernels of candle with every check on, and compares what they write with numpy.

    python3 crates/kiln/tests/corpus/oracle/candle.py --kiln target/release/kiln FOLDER

FOLDER has the PTX of `candle-kernels/src` (`affine.ptx`, `unary.ptx`, …, with any prefix), with lines. Needs numpy. A kernel runs with contiguous and with strided
arrays where it takes strides. The last line has the totals; a kernel without an oracle is counted and named with `--missing`.
"""

import argparse
import concurrent.futures
import pathlib
import re
import sys

import elementwise
import kiln_run
import reductions
import indexing

#: Kernels with a mistake that is found and leaves the results right: docs/testing.md has its lines. Below sm_90, CUDA's `atomicAdd` of bf16 begins with a plain read.
MISTAKES = {"sum_bf16"}

ORACLES = elementwise.ORACLES + reductions.ORACLES + indexing.ORACLES


def launches(kernel):
    """The launches that try a kernel; none if there is no oracle for it."""
    for pattern, make in ORACLES:
        match = re.fullmatch(pattern, kernel)
        if match:
            return make(*match.groups())
    return []


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--kiln", default="kiln", help="the command")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--only", default="", help="a pattern for the names of kernels")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--missing", action="store_true", help="name the kernels without an oracle")
    arguments = parser.parse_args()
    work, missing = [], []
    for path in sorted(arguments.folder.glob("*.ptx")):
        for kernel in re.findall(r"\.visible \.entry (\w+)", path.read_text()):
            if re.search(arguments.only, kernel):
                made = launches(kernel)
                work.append((path, kernel, made)) if made else missing.append(kernel)

    def attempt(item):
        path, kernel, made = item
        for number, launch in enumerate(made):
            wrong = kiln_run.run(arguments.kiln, str(path), kernel, launch, arguments.seed, kernel in MISTAKES)
            if wrong:
                return kernel, f"launch {number}: {wrong}"
        return kernel, None

    right = 0
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        for kernel, wrong in pool.map(attempt, work):
            right += wrong is None
            if wrong:
                print(f"{kernel}: {wrong}", flush=True)
    if arguments.missing:
        print("no oracle:", " ".join(missing))
    known = sum(kernel in MISTAKES for _, kernel, _ in work)
    print(f"{known} with a known mistake, of which the results are compared")
    print(f"{len(work)} kernels executed, {right} right, {len(work) - right} not; {len(missing)} without an oracle")
    sys.exit(right != len(work))


if __name__ == "__main__":
    main()
