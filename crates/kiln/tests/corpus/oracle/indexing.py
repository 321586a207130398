"""Oracles for the kernels of candle that gather and scatter."""

import numpy as np

from kiln_run import Launch, Output
from layouts import BLOCK, GRID, generator, kind_of, numbers, size

LEFT, SOURCE, IDS, RIGHT = 3, 5, 7, 4
INDEX = r"(u8|u32|i16|i32|i64)"
TYPE = r"(bf16|f16|f32|f64|u8|u32|i64|f8_e4m3)"


def indices(random, kind, shape, limit):
    """Indices below a limit; the largest number of the type, which means none, is among them."""
    ids = random.integers(0, limit, shape).astype(kind.storage)
    ids.ravel()[3] = np.iinfo(kind.storage).max
    return ids


def is_none(kind, index):
    return index == np.iinfo(kind.storage).max


def select(index_name, type_name):
    index, kind = kind_of(index_name), kind_of(type_name)
    made = []
    for transposed in (False, True):
        random = generator("is", index_name, type_name)
        ids = indices(random, index, IDS, SOURCE)
        stored = numbers(random, kind, LEFT * SOURCE * RIGHT)
        if transposed:
            values, strides = stored.reshape(RIGHT, SOURCE, LEFT).transpose(2, 1, 0), (1, LEFT, LEFT * SOURCE)
        else:
            values, strides = stored.reshape(LEFT, SOURCE, RIGHT), (SOURCE * RIGHT, RIGHT, 1)
        expected = np.zeros((LEFT, IDS, RIGHT), kind.storage)
        for at, to in enumerate(ids):
            if not is_none(index, to):
                expected[:, at] = values[:, int(to)]
        info = np.array([LEFT, SOURCE, RIGHT, *strides], np.uint64)
        counts = [size(number) for number in (LEFT, SOURCE, IDS, RIGHT)]
        head = [size(expected.size), size(3), info, ids, stored]
        made.append(Launch(GRID, BLOCK, [*head, Output(kind, expected), *counts]))
    return made


def gather(index_name, type_name):
    index, kind = kind_of(index_name), kind_of(type_name)
    random = generator("gather", index_name, type_name)
    ids = indices(random, index, (LEFT, IDS, RIGHT), SOURCE)
    values = numbers(random, kind, LEFT * SOURCE * RIGHT).reshape(LEFT, SOURCE, RIGHT)
    expected = np.zeros(ids.shape, kind.storage)
    for (a, b, c), to in np.ndenumerate(ids):
        if not is_none(index, to):
            expected[a, b, c] = values[a, int(to), c]
    counts = [size(number) for number in (LEFT, SOURCE, IDS, RIGHT)]
    return [Launch(GRID, BLOCK, [size(ids.size), ids, values, Output(kind, expected), *counts])]


def scatter(name, index_name, type_name):
    """`ia` adds rows, `sa` adds elements, `s` writes them: one after the other, each sum rounded."""
    index, kind = kind_of(index_name), kind_of(type_name)
    random = generator(name, index_name, type_name)
    shape = (LEFT, IDS, RIGHT)
    ids = indices(random, index, IDS if name == "ia" else shape, SOURCE)
    values = numbers(random, kind, LEFT * IDS * RIGHT).reshape(shape)
    before = numbers(random, kind, LEFT * SOURCE * RIGHT).reshape(LEFT, SOURCE, RIGHT)
    expected = before.copy()
    with np.errstate(all="ignore"):
        for (a, b, c), value in np.ndenumerate(values):
            to = ids[b] if name == "ia" else ids[a, b, c]
            if is_none(index, to):
                continue
            if name == "s":
                expected[a, int(to), c] = value
            else:
                both = np.array([expected[a, int(to), c], value])
                first, second = kind.values(both)
                expected[a, int(to), c] = kind.stored(np.array([first + second]))[0]
    output = Output(kind, expected, before=before)
    head = [ids, size(IDS), values, output] if name == "ia" else [ids, values, output]
    return [Launch(GRID, BLOCK, head + [size(number) for number in (LEFT, IDS, SOURCE, RIGHT)])]


ORACLES = [
    (rf"is_{INDEX}_{TYPE}", select),
    (rf"gather_{INDEX}_{TYPE}", gather),
    (rf"(ia|sa|s)_{INDEX}_{TYPE}", scatter),
]
