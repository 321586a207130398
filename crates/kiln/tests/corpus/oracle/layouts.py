"""Arrays for kernels that take dimensions and strides, and their launches."""

import zlib

import numpy as np

from number_types import TYPES

DIMENSIONS = (6, 35)
COUNT = DIMENSIONS[0] * DIMENSIONS[1]
#: Fewer threads than elements, so that loops over the grid run more than once.
GRID, BLOCK = "2", "64"


def generator(*words):
    """Numbers that are the same every time for the same words."""
    return np.random.default_rng(zlib.crc32(" ".join(map(str, words)).encode()))


def numbers(random, kind, count, low=-3.0, high=3.0):
    """Stored numbers of a type."""
    if kind.is_integer:
        low = 0 if kind.name[0] == "u" else int(low * 30)
        return random.integers(low, int(high * 30), count).astype(kind.storage)
    return kind.stored(random.uniform(low, high, count))


class Layout:
    """How elements lie in memory: rows one behind the other, or columns."""

    def __init__(self, transposed):
        self.transposed = transposed
        self.strides = (1, DIMENSIONS[0]) if transposed else (DIMENSIONS[1], 1)

    def logical(self, stored):
        """The elements in the order of their indices."""
        if self.transposed:
            return stored.reshape(DIMENSIONS[::-1]).T.ravel()
        return stored.ravel()

    def info(self, *others):
        """Dimensions, and strides of this array and others."""
        words = list(DIMENSIONS) + list(self.strides)
        for other in others:
            words += other.strides
        return np.array(words, np.uint64)


ROWS, COLUMNS = Layout(False), Layout(True)
LAYOUTS = [ROWS, COLUMNS]


def size(number):
    return f"u64:{number}"


def kind_of(name):
    return TYPES[{"fp8_e4m3": "f8_e4m3"}.get(name, name)]
