//! Times, sizes and shares in words.

use std::fmt;

/// A time in nanoseconds.
pub(crate) struct Time(pub(crate) u64);

/// A number of bytes.
pub(crate) struct Bytes(pub(crate) u64);

/// A part of a whole.
pub(super) struct Share {
    pub(super) part: u64,
    pub(super) whole: u64,
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            ns @ 0..1_000 => write!(f, "{ns} ns"),
            ns @ 1_000..1_000_000 => write!(f, "{} us", Tenths(ns, 1_000)),
            ns @ 1_000_000..1_000_000_000 => write!(f, "{} ms", Tenths(ns, 1_000_000)),
            ns => write!(f, "{} s", Hundredths(ns, 1_000_000_000)),
        }
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            bytes @ 0..0x400 => write!(f, "{bytes} bytes"),
            bytes @ 0x400..0x10_0000 => write!(f, "{} KiB", Tenths(bytes, 1 << 10)),
            bytes @ 0x10_0000..0x4000_0000 => write!(f, "{} MiB", Tenths(bytes, 1 << 20)),
            bytes => write!(f, "{} GiB", Hundredths(bytes, 1 << 30)),
        }
    }
}

/// A number in a unit, with one digit behind the point. A half is rounded up, as the page of `kiln watch` does it.
struct Tenths(u64, u64);

/// The same with two digits.
struct Hundredths(u64, u64);

impl fmt::Display for Tenths {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tenths = rounded(self.0, 10, self.1);
        write!(f, "{}.{}", tenths / 10, tenths % 10)
    }
}

impl fmt::Display for Hundredths {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hundredths = rounded(self.0, 100, self.1);
        write!(f, "{}.{:02}", hundredths / 100, hundredths % 100)
    }
}

fn rounded(number: u64, parts: u64, unit: u64) -> u128 {
    (u128::from(number) * u128::from(parts) + u128::from(unit / 2)) / u128::from(unit)
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.whole {
            0 => write!(f, "0 %"),
            whole => write!(f, "{:.0} %", 100.0 * self.part as f64 / whole as f64),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_have_the_unit_that_fits() {
        assert_eq!(Time(999).to_string(), "999 ns");
        assert_eq!(Time(1_500).to_string(), "1.5 us");
        assert_eq!(Time(12_340_000).to_string(), "12.3 ms");
        assert_eq!(Time(2_500_000_000).to_string(), "2.50 s");
        assert_eq!(Bytes(512).to_string(), "512 bytes");
        assert_eq!(Bytes(3 << 20).to_string(), "3.0 MiB");
        assert_eq!(Bytes(u64::MAX).to_string(), "17179869184.00 GiB");
        assert_eq!(Share { part: 1, whole: 4 }.to_string(), "25 %");
        assert_eq!(Share { part: 0, whole: 0 }.to_string(), "0 %");
    }

    /// The page has the same words for these (`numbers_have_the_words_of_the_explanation` among the tests in a browser).
    #[test]
    fn a_half_is_rounded_up() {
        for (bytes, words) in [
            (800_000, "781.3 KiB"),
            (1_088, "1.1 KiB"),
            (1_075, "1.0 KiB"),
            (1_310_720, "1.3 MiB"),
            (1_079_110_534, "1.01 GiB"),
        ] {
            assert_eq!(Bytes(bytes).to_string(), words);
        }
        for (ns, words) in
            [(1_250, "1.3 us"), (1_450, "1.5 us"), (2_350_000, "2.4 ms"), (1_005_000_000, "1.01 s")]
        {
            assert_eq!(Time(ns).to_string(), words);
        }
    }
}
