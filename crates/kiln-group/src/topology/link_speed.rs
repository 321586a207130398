//! `LinkSpeed`: rate and latency of a connection.

use std::fmt;

/// The speed of a connection, in one direction.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct LinkSpeed {
    /// Bytes that pass in a microsecond; 450,000 is 450 GB/s.
    pub bytes_per_us: u64,
    /// What a message takes besides its bytes.
    pub latency_ns: u64,
}

impl LinkSpeed {
    /// The latency as text.
    pub(super) fn latency(self) -> String {
        let units = [("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000), ("ns", 1)];
        scaled(self.latency_ns, &units)
    }
}

impl fmt::Display for LinkSpeed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {}", written_rate(self.bytes_per_us, "B/s"), self.latency())
    }
}

/// A rate of `per_us` millions in a second, in giga where that is at least one.
pub(super) fn written_rate(per_us: u64, unit: &str) -> String {
    let prefix = if per_us >= 1_000 { ("G", 1_000) } else { ("M", 1) };
    format!("{}{unit}", scaled(per_us, &[prefix]))
}

/// A number in the first unit that is not larger than it, with all of its digits.
fn scaled(number: u64, units: &[(&str, u64)]) -> String {
    let (name, unit) = units.iter().copied().find(|(_, unit)| number >= *unit).unwrap_or(("ns", 1));
    let (whole, rest) = (number / unit, number % unit);
    if rest == 0 {
        return format!("{whole}{name}");
    }
    let digits = unit.to_string().len() - 1;
    let fraction = format!("{rest:0digits$}");
    format!("{whole}.{}{name}", fraction.trim_end_matches('0'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_digit_is_written() {
        let speed = |bytes_per_us, latency_ns| LinkSpeed { bytes_per_us, latency_ns }.to_string();
        assert_eq!(speed(450_000, 1_000), "450GB/s, 1us");
        assert_eq!(speed(12_500, 1_850), "12.5GB/s, 1.85us");
        assert_eq!(speed(999, 0), "999MB/s, 0ns");
        assert_eq!(speed(1, 1_000_000_001), "1MB/s, 1.000000001s");
    }
}
