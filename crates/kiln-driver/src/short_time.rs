//! `ShortTime`: a time as an error tells it.

use std::fmt;
use std::time::Duration;

/// Prints a time with the digits that a reader needs: `12.0 s`, `0.3 s`, `15 ms`, `40 us`.
///
/// ```
/// use std::time::Duration;
/// use kiln_driver::ShortTime;
///
/// assert_eq!(ShortTime(Duration::from_nanos(12_000_103_158)).to_string(), "12.0 s");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct ShortTime(pub Duration);

impl fmt::Display for ShortTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ns = self.0.as_nanos();
        match ns {
            0 => f.write_str("0 s"),
            // From here on the tenths of a second are not rounded to zero.
            99_950_000.. => write!(f, "{:.1} s", self.0.as_secs_f64()),
            999_500.. => write!(f, "{:.0} ms", ns as f64 / 1e6),
            1_000.. => write!(f, "{:.0} us", ns as f64 / 1e3),
            _ => write!(f, "{ns} ns"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_has_the_digits_that_a_reader_needs() {
        let text = |ns| ShortTime(Duration::from_nanos(ns)).to_string();
        let told = [0, 7, 1_400, 999_400, 999_600, 15_000_000, 99_940_000, 100_000_000, 640_000_000];
        assert_eq!(
            told.map(text),
            ["0 s", "7 ns", "1 us", "999 us", "1 ms", "15 ms", "100 ms", "0.1 s", "0.6 s"]
        );
        assert_eq!([12_000_103_158, 60_000_000_000].map(text), ["12.0 s", "60.0 s"]);
        assert_eq!(ShortTime(Duration::MAX).to_string(), "18446744073709551616.0 s");
    }
}
