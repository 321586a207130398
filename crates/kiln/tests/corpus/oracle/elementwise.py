"""Oracles for the kernels of candle that compute each element by itself."""

import math
from fractions import Fraction

import numpy as np

from kiln_run import Launch, Output
from layouts import BLOCK, COLUMNS, COUNT, DIMENSIONS, GRID, LAYOUTS, ROWS, generator, kind_of, numbers, size

TYPE = r"(bf16|f16|f32|f64|u8|u32|i16|i32|i64|f8_e4m3)"

erf = np.vectorize(math.erf, otypes=[np.float64])


SQRT_2 = Fraction(math.isqrt(2 * 10**60), 10**30)


def normal_cdf_of(x):
    """With what rounding `x / sqrt(2)` would add taken away: the function magnifies it."""
    t = -x / math.sqrt(2)
    rest = float(Fraction(-x) / SQRT_2 - Fraction(t))
    return 0.5 * (math.erfc(t) - 2 / math.sqrt(math.pi) * math.exp(-t * t) * rest)


normal_cdf = np.vectorize(lambda x: normal_cdf_of(float(x)), otypes=[np.float64])


def tanh_gelu(x):
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


PARAMETER = {"elu": 0.5, "powf": 3.0}

#: Of each function: what it computes of doubles, how many units of the last place a result may be off, and a size that this is relative to besides the result.
UNARY = {
    "copy": (lambda x: x, 0, 0),
    "neg": (lambda x: -x, 0, 0),
    "abs": (np.abs, 0, 0),
    "sqr": (lambda x: x * x, 0, 0),
    "ceil": (np.ceil, 0, 0),
    "floor": (np.floor, 0, 0),
    "round": (lambda x: np.copysign(np.floor(np.abs(x) + 0.5), x), 0, 0),
    "relu": (lambda x: np.maximum(x, 0), 0, 0),
    "sign": (np.sign, 0, 0),
    "recip": (lambda x: 1 / x, 1, 0),
    "sqrt": (np.sqrt, 1, 0),
    "exp": (np.exp, 2, 0),
    "log": (np.log, 2, 0.1),
    "sin": (np.sin, 2, 0.1),
    "cos": (np.cos, 2, 0.1),
    "tanh": (np.tanh, 2, 0),
    "erf": (erf, 2, 0),
    "normcdf": (normal_cdf, 5, 0),
    "gelu": (tanh_gelu, 4, 2),
    "gelu_erf": (lambda x: x * normal_cdf(x), 6, 0),
    "elu": (lambda x: np.where(x > 0, x, PARAMETER["elu"] * np.expm1(x)), 2, 0.5),
    "silu": (lambda x: x / (1 + np.exp(-x)), 4, 0),
    "powf": (lambda x: x ** PARAMETER["powf"], 4, 0),
    "sigmoid": (lambda x: 1 / (1 + np.exp(-x)), 4, 0),
}


def unary(name, type_name):
    kind, (function, slack, scale) = kind_of(type_name), UNARY[name]
    low = 0.01 if name in ("log", "sqrt") else -3.0
    made = []
    for layout in LAYOUTS:
        stored = numbers(generator(name, type_name), kind, COUNT, low=low)
        with np.errstate(all="ignore"):
            expected = kind.stored(function(kind.values(layout.logical(stored))))
        head = [size(COUNT), size(2), layout.info()]
        head += [kind.scalar(PARAMETER[name])] if name in PARAMETER else []
        made.append(Launch(GRID, BLOCK, head + [stored, Output(kind, expected, slack=slack, size=scale)]))
    return made


def integer_quotient(x, y):
    """As C divides."""
    quotient = np.abs(x.astype(object)) // np.abs(y.astype(object))
    return (quotient * np.sign(x.astype(object)) * np.sign(y.astype(object))).astype(x.dtype)


BINARY = {
    "badd": (lambda x, y: x + y, 0),
    "bsub": (lambda x, y: x - y, 0),
    "bmul": (lambda x, y: x * y, 0),
    "bdiv": (lambda x, y: integer_quotient(x, y) if x.dtype.kind in "ui" else x / y, 1),
    "bmaximum": (np.maximum, 0),
    "bminimum": (np.minimum, 0),
    "eq": (np.equal, 0),
    "ne": (np.not_equal, 0),
    "lt": (np.less, 0),
    "le": (np.less_equal, 0),
    "gt": (np.greater, 0),
    "ge": (np.greater_equal, 0),
}


def binary(name, type_name):
    kind, (function, slack) = kind_of(type_name), BINARY[name]
    to = kind if name[0] == "b" else kind_of("u8")
    made = []
    for left, right in [(ROWS, ROWS), (ROWS, COLUMNS), (COLUMNS, ROWS), (COLUMNS, COLUMNS)]:
        random = generator(name, type_name)
        x, y = (numbers(random, kind, COUNT) for _ in range(2))
        y[: COUNT // 4] = x[: COUNT // 4]
        y = np.where(kind.values(y) == 0, kind.stored(np.ones(COUNT)), y).astype(kind.storage)
        with np.errstate(all="ignore"):
            result = function(kind.values(left.logical(x)), kind.values(right.logical(y)))
        output = Output(to, to.stored(result), slack=slack)
        made.append(Launch(GRID, BLOCK, [size(COUNT), size(2), left.info(right), x, y, output]))
    return made


def affine(type_name):
    kind, made = kind_of(type_name), []
    factor, summand = (3, 7) if kind.is_integer else (1.5, -0.75)
    for layout in LAYOUTS:
        x = numbers(generator("affine", type_name), kind, COUNT)
        values = kind.values(layout.logical(x))
        values = values.astype(np.int64) if kind.is_integer else values
        output = Output(kind, kind.stored(values * factor + summand), slack=1, size=4)
        arguments = [size(COUNT), size(2), layout.info(), x, output, kind.scalar(factor), kind.scalar(summand)]
        made.append(Launch(GRID, BLOCK, arguments))
    return made


def cast(from_name, to_name):
    source, target = kind_of(from_name), kind_of(to_name)
    made = []
    for layout in LAYOUTS:
        random = generator("cast", from_name, to_name)
        if source.is_integer and target.is_integer:
            x = random.integers(0, min(2**40, np.iinfo(source.storage).max), COUNT).astype(source.storage)
        elif source.is_integer or target.is_integer:
            x = source.stored(random.integers(0, 200, COUNT) if source.is_integer else random.uniform(0, 200, COUNT))
        else:
            x = source.stored(random.uniform(-100, 100, COUNT))
        values = source.values(layout.logical(x))
        if target.is_integer and not source.is_integer:
            values = np.trunc(values).astype(np.int64)
        output = Output(target, target.stored(values))
        made.append(Launch(GRID, BLOCK, [size(COUNT), size(2), layout.info(), x, output]))
    return made


def where(index_name, type_name):
    index, kind = kind_of(index_name), kind_of(type_name)
    made = []
    for chosen, x_layout, y_layout in [(ROWS, ROWS, ROWS), (COLUMNS, ROWS, COLUMNS)]:
        random = generator("where", index_name, type_name)
        ids = random.integers(0, 3, COUNT).astype(index.storage)
        x, y = (numbers(random, kind, COUNT) for _ in range(2))
        expected = np.where(chosen.logical(ids) != 0, x_layout.logical(x), y_layout.logical(y))
        info = chosen.info(x_layout, y_layout)
        made.append(Launch(GRID, BLOCK, [size(COUNT), size(2), info, ids, x, y, Output(kind, expected)]))
    return made


def fill(type_name):
    kind = kind_of(type_name)
    value = kind.scalar(5)
    return [Launch(GRID, BLOCK, [Output(kind, kind.stored(np.full(COUNT, 5))), value, size(COUNT)])]


def const_set(type_name):
    kind, made = kind_of(type_name), []
    for layout in LAYOUTS:
        output = Output(kind, kind.stored(np.full(COUNT, 5)))
        made.append(Launch(GRID, BLOCK, [size(COUNT), size(2), layout.info(), kind.scalar(5), output]))
    return made


def copy2d(type_name):
    kind = kind_of(type_name)
    rows, columns, from_stride, to_stride = *DIMENSIONS, 37, 40
    random = generator("copy2d", type_name)
    x = numbers(random, kind, rows * from_stride)
    before = numbers(random, kind, rows * to_stride)
    expected = before.reshape(rows, to_stride).copy()
    expected[:, :columns] = x.reshape(rows, from_stride)[:, :columns]
    counts = [f"u32:{number}" for number in (rows, columns, from_stride, to_stride)]
    return [Launch("4", BLOCK, [x, Output(kind, expected, before=before), *counts])]


ORACLES = [
    (rf"u({'|'.join(sorted(UNARY, key=len, reverse=True))})_{TYPE}", unary),
    (rf"({'|'.join(BINARY)})_{TYPE}", binary),
    (rf"affine_{TYPE}", affine),
    (rf"cast_{TYPE}_{TYPE}", cast),
    (rf"where_(u8|u32|i16|i32|i64)_(fp8_e4m3|bf16|f16|f32|f64|u8|u32|i64)", where),
    (rf"fill_{TYPE}", fill),
    (rf"const_set_{TYPE}", const_set),
    (rf"copy2d_{TYPE}", copy2d),
]
