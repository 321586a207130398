"""One launch of `kiln run`, and the comparison of what it wrote."""

import os
import subprocess
import tempfile

import numpy as np


class Launch:
    """A launch: its arguments in order, and what its outputs must hold.

    An argument is a word as `kiln run` takes it, an array (`in:`), or an `Output`.
    """

    def __init__(self, grid, block, arguments, shared=0):
        self.grid, self.block, self.arguments, self.shared = grid, block, arguments, shared


class Output:
    """An array that the kernel writes: what it holds before, if that matters, and what it must hold after.

    With `eps` a number may be off by `eps * slack * (|number| + size)`; without it every bit counts, and every NaN is one.
    """

    def __init__(self, kind, expected, before=None, slack=0.0, size=0.0):
        self.kind, self.expected, self.before = kind, np.asarray(expected), before
        self.slack, self.size = slack, size

    def difference(self, stored):
        """What is wrong with an array, or nothing."""
        got, wanted = self.kind.values(stored.ravel()), self.kind.values(self.expected.ravel())
        with np.errstate(all="ignore"):
            if self.slack and not self.kind.is_integer:
                room = self.kind.eps * self.slack * (np.abs(wanted) + self.size)
                good = (np.abs(got - wanted) <= room) | (got == wanted) | (np.isnan(got) & np.isnan(wanted))
            else:
                good = got == wanted
                if not self.kind.is_integer:
                    good |= np.isnan(got) & np.isnan(wanted)
        if good.all():
            return None
        at = int(np.argmin(good))
        return f"element {at} is {got[at]!r}, not {wanted[at]!r} ({(~good).sum()} of {good.size} differ)"


def run(kiln, ptx, kernel, launch, seed, has_mistake=False):
    """Runs a kernel; what went wrong, or nothing. With a mistake it must be told, and the results count."""
    with tempfile.TemporaryDirectory() as folder:
        words, outputs = [], []
        for number, argument in enumerate(launch.arguments):
            path = os.path.join(folder, f"{number}.npy")
            if isinstance(argument, Output):
                result = os.path.join(folder, f"{number}-out.npy")
                outputs.append((argument, result))
                if argument.before is None:
                    word = argument.kind.word if argument.kind.word != "bf16" else "u16"
                    words.append(f"out:{word}:{argument.expected.size}:{result}")
                else:
                    np.save(path, argument.before.ravel())
                    words.append(f"inout:{path}:{result}")
            elif isinstance(argument, np.ndarray):
                np.save(path, argument.ravel())
                words.append(f"in:{path}")
            else:
                words.append(argument)
        command = [kiln, "run", ptx, "--kernel", kernel, "--grid", launch.grid, "--block", launch.block]
        command += ["--seed", str(seed), "--shared", str(launch.shared)]
        command += [part for word in words for part in ("--arg", word)]
        environment = {**os.environ, "KILN_POLICY": "simulate"}
        environment["KILN_FINDINGS"] = "report" if has_mistake else "fail"
        done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=600)
        if done.returncode != 0:
            return f"exit {done.returncode}: {(done.stderr or done.stdout).strip()[:600]}"
        if has_mistake and "1. " not in done.stdout + done.stderr:
            return "the known mistake was not found"
        for output, result in outputs:
            wrong = output.difference(np.load(result))
            if wrong:
                return wrong
    return None
