"""Oracles for the kernels of candle that compute with rows: reductions, norms, softmax, rotary embeddings, sorts."""

import numpy as np

from kiln_run import Launch, Output
from layouts import generator, kind_of, numbers, size

ROWS, COLUMNS = 4, 70
TYPE = r"(bf16|f16|f32|f64|u8|u32|i64)"


def distinct(random, kind, rows, columns):
    """Rows without two numbers that are the same."""
    values = np.stack([random.permutation(columns) for _ in range(rows)])
    return kind.stored(values if kind.name[0] == "u" else values - columns // 2)


def fast(name, type_name):
    kind = kind_of(type_name)
    random = generator("fast", name, type_name)
    made = []
    for transposed in (False, True):
        x = distinct(random, kind, ROWS, COLUMNS) if name != "sum" else numbers(random, kind, ROWS * COLUMNS)
        x = x.reshape(ROWS, COLUMNS)
        values = kind.values(x)
        if name == "sum":
            total = values.sum(axis=1, dtype=values.dtype if kind.is_integer else np.float64)
            output = Output(kind, kind.stored(total), slack=8, size=float(np.abs(values.astype(float)).sum(axis=1).max()))
        elif name.startswith("arg"):
            output = Output(kind_of("u32"), getattr(np, name)(values, axis=1).astype(np.uint32))
        else:
            output = Output(kind, kind.stored(getattr(np, name)(values, axis=1)))
        strides = (1, ROWS) if transposed else (COLUMNS, 1)
        stored = np.ascontiguousarray(x.T) if transposed else x
        info = np.array([ROWS, COLUMNS, *strides], np.uint64)
        head = [size(x.size), size(COLUMNS), size(2), info, stored]
        made.append(Launch(str(ROWS), "64", [*head, output]))
    return made


def total(type_name):
    """Sums over the middle one of three dimensions by atomics."""
    kind = kind_of(type_name)
    shape = (5, 7, 6)
    x = numbers(generator("sum", type_name), kind, 5 * 7 * 6).reshape(shape)
    values = kind.values(x)
    expected = kind.stored(values.sum(axis=1, dtype=values.dtype if kind.is_integer else np.float64))
    output = Output(kind, expected, before=np.zeros(expected.size, kind.storage), slack=8, size=20)
    made = []
    for strides in [(42, 6, 1), (1, 5, 35)]:
        stored = x if strides[0] == 42 else np.ascontiguousarray(x.transpose(2, 1, 0))
        info = np.array([*shape, *strides, 7, 6], np.uint64)
        made.append(Launch("2", "64", [size(x.size), size(3), size(1), info, stored, output]))
    return made


def softmax(type_name):
    kind = kind_of(type_name)
    x = numbers(generator("softmax", type_name), kind, ROWS * COLUMNS)
    values = kind.values(x).reshape(ROWS, COLUMNS)
    powers = np.exp(values - values.max(axis=1, keepdims=True))
    output = Output(kind, kind.stored(powers / powers.sum(axis=1, keepdims=True)), slack=8)
    return [Launch(str(ROWS), "1,32", [x, output, f"i32:{COLUMNS}"])]


def norm(name, type_name):
    kind = kind_of(type_name)
    random = generator(name, type_name)
    x, alpha, beta = (numbers(random, kind, count) for count in (ROWS * COLUMNS, COLUMNS, COLUMNS))
    values = kind.values(x).reshape(ROWS, COLUMNS)
    shifted = values - (values.mean(axis=1, keepdims=True) if name == "layernorm" else 0)
    scale = 1 / np.sqrt((shifted**2).mean(axis=1, keepdims=True) + 1e-5)
    expected = shifted * scale * kind.values(alpha) + (kind.values(beta) if name == "layernorm" else 0)
    # Both accumulate and store in singles.
    wide = kind_of("f32").eps / kind.eps if kind.name == "f64" else 1
    output = Output(kind, kind.stored(expected), slack=8 * wide, size=4)
    arrays = [x, output, alpha] + ([beta] if name == "layernorm" else [])
    return [Launch(str(ROWS), "32", [*arrays, f"i32:{COLUMNS}", "i32:32", "f32:1e-5"])]


def rope(form, type_name):
    kind = kind_of(type_name)
    batches, times, heads, width = 2, 5, 3, 8
    random = generator("rope", form, type_name)
    angles = random.uniform(0, 6, (times, width // 2))
    cos, sin = kind.stored(np.cos(angles)), kind.stored(np.sin(angles))
    c, s = kind.values(cos), kind.values(sin)
    x = numbers(random, kind, batches * times * heads * width)
    # `rope_thd` has the times before the heads, the others behind them.
    shape = (batches, times, heads, width) if form == "_thd" else (batches * heads, times, width)
    values = kind.values(x).reshape(shape)
    c, s = (part[:, None, :] if form == "_thd" else part for part in (c, s))
    expected = np.empty(shape)
    if form == "_i":
        a, b = values[..., 0::2], values[..., 1::2]
        expected[..., 0::2], expected[..., 1::2] = a * c - b * s, a * s + b * c
    else:
        a, b = values[..., : width // 2], values[..., width // 2 :]
        expected[..., : width // 2], expected[..., width // 2 :] = a * c - b * s, a * s + b * c
    output = Output(kind, kind.stored(expected), slack=2, size=3)
    counts = {
        "": [batches * heads, times * width, width, 0],
        "_i": [batches * heads, times * width, 0],
        "_thd": [batches, times, heads, width, 0],
    }[form]
    return [Launch("4", "64", [x, cos, sin, output, *(f"u32:{count}" for count in counts)])]


def argsort(order, type_name):
    kind, columns, padded = kind_of(type_name), 50, 64
    x = distinct(generator("asort", order, type_name), kind, ROWS, columns)
    ids = np.argsort(kind.values(x), axis=1)
    ids = ids if order == "asc" else ids[:, ::-1]
    output = Output(kind_of("u32"), ids.astype(np.uint32))
    return [Launch(str(ROWS), "32", [x, output, f"i32:{columns}", f"i32:{padded}"], shared=4 * padded)]


ORACLES = [
    (rf"fast_(sum|min|max|argmin|argmax)_{TYPE}", fast),
    (rf"sum_{TYPE}", total),
    (rf"softmax_{TYPE}", softmax),
    (rf"(rmsnorm|layernorm)_{TYPE}", norm),
    (rf"rope(_i|_thd|)_{TYPE}", rope),
    (rf"asort_(asc|desc)_{TYPE}", argsort),
]
