"""Element types of kernels as numpy sees them: bf16 and e4m3 are kept as their bits."""

import numpy as np


def _e4m3_value(bits):
    sign = -1.0 if bits & 0x80 else 1.0
    exponent, fraction = bits >> 3 & 15, bits & 7
    if exponent == 15 and fraction == 7:
        return float("nan")
    if exponent == 0:
        return sign * fraction * 2.0**-9
    return sign * (1 + fraction / 8) * 2.0 ** (exponent - 7)


_E4M3 = np.array([_e4m3_value(bits) for bits in range(256)])


def _bf16_values(bits):
    return (bits.astype(np.uint32) << 16).view(np.float32).astype(np.float64)


def _bf16_bits(values):
    """To the nearest, ties to even, from doubles: through integers, so that nothing is rounded twice."""
    values = np.asarray(values, np.float64)
    with np.errstate(all="ignore"):
        single = values.astype(np.float32)
        # A single that was rounded to a tie leans to where the double was.
        low = (single.view(np.uint32) & 0xFFFF) == 0x8000
        lean = np.sign(np.abs(values) - np.abs(single.astype(np.float64))).astype(np.int64) * low
    bits = single.view(np.uint32).astype(np.int64) + lean
    rounded = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16
    return np.where(np.isnan(values), 0x7FFF, rounded).astype(np.uint16)


def _e4m3_bits(values):
    """To the nearest, ties to even, at most 448."""
    values = np.clip(np.asarray(values, np.float64), -448, 448)
    positive = _E4M3[:127]
    at = np.clip(np.searchsorted(positive, np.abs(values)), 1, 126)
    below, above = positive[at - 1], positive[at]
    up = np.abs(values) - below > above - np.abs(values)
    tie = np.abs(values) - below == above - np.abs(values)
    bits = np.where(up | tie & (at % 2 == 0), at, at - 1)
    return np.where(np.signbit(values), bits | 0x80, bits).astype(np.uint8)


class NumberType:
    """A type: `storage` is what its array has in a file, `eps` the distance of 1 to the next number (0 for integers)."""

    def __init__(self, name, storage, eps, word, values=None, bits=None):
        self.name, self.storage, self.eps, self.word = name, np.dtype(storage), eps, word
        self._values, self._bits = values, bits

    @property
    def is_integer(self):
        return self.eps == 0

    def values(self, stored):
        """The numbers of an array as doubles, or the integers themselves."""
        if self._values:
            return self._values(stored)
        return stored if self.is_integer else stored.astype(np.float64)

    def stored(self, values):
        """Numbers rounded to the type; integers wrap."""
        if self._bits:
            return self._bits(values)
        with np.errstate(all="ignore"):
            return np.asarray(values).astype(self.storage)

    def scalar(self, value):
        """An argument for `kiln run`."""
        stored = self.stored(np.array([value]))
        if self._bits or self.storage == np.float16:
            return "bytes:" + stored.tobytes().hex()
        return f"{self.word}:{stored[0]}"


TYPES = {
    kind.name: kind
    for kind in [
        NumberType("f64", np.float64, 2.0**-52, "f64"),
        NumberType("f32", np.float32, 2.0**-23, "f32"),
        NumberType("f16", np.float16, 2.0**-10, "f16"),
        NumberType("bf16", np.uint16, 2.0**-7, "bf16", _bf16_values, _bf16_bits),
        NumberType("f8_e4m3", np.uint8, 2.0**-3, "u8", lambda bits: _E4M3[bits], _e4m3_bits),
        NumberType("u8", np.uint8, 0, "u8"),
        NumberType("u32", np.uint32, 0, "u32"),
        NumberType("i64", np.int64, 0, "i64"),
        NumberType("i32", np.int32, 0, "i32"),
        NumberType("i16", np.int16, 0, "i16"),
    ]
}
