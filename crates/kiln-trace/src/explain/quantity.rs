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
        let ns = self.0 as f64;
        match self.0 {
            0..1_000 => write!(f, "{} ns", self.0),
            1_000..1_000_000 => write!(f, "{:.1} us", ns / 1e3),
            1_000_000..1_000_000_000 => write!(f, "{:.1} ms", ns / 1e6),
            _ => write!(f, "{:.2} s", ns / 1e9),
        }
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = self.0 as f64;
        match self.0 {
            0..1024 => write!(f, "{} bytes", self.0),
            1024..0x10_0000 => write!(f, "{:.1} KiB", bytes / 1024.0),
            0x10_0000..0x4000_0000 => write!(f, "{:.1} MiB", bytes / 1_048_576.0),
            _ => write!(f, "{:.2} GiB", bytes / 1_073_741_824.0),
        }
    }
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
        assert_eq!(Share { part: 1, whole: 4 }.to_string(), "25 %");
        assert_eq!(Share { part: 0, whole: 0 }.to_string(), "0 %");
    }
}
