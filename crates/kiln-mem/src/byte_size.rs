//! `ByteSize`: parses and prints sizes such as `8GiB`.

use std::fmt;
use std::str::FromStr;

/// A number of bytes that prints and reads as `8 GiB`.
///
/// ```
/// use kiln_mem::ByteSize;
///
/// assert_eq!(ByteSize(8 << 30).to_string(), "8 GiB");
/// assert_eq!("8GiB".parse(), Ok(ByteSize(8 << 30)));
/// assert_eq!("1.5 MiB".parse(), Ok(ByteSize(3 << 19)));
/// assert!("8 gigs".parse::<ByteSize>().is_err());
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub struct ByteSize(pub u64);

/// A text that is no size.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("`{0}` is no size; write a number and B, KiB, MiB, GiB or TiB, such as `8GiB`")]
pub struct ByteSizeError(pub String);

const UNITS: [(&str, u64); 5] =
    [("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10), ("B", 1)];

impl fmt::Display for ByteSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whole = |(_, unit): &&(&str, u64)| self.0 >= *unit && self.0.is_multiple_of(*unit);
        let (name, unit) = UNITS.iter().find(whole).unwrap_or(&("B", 1));
        write!(f, "{} {name}", self.0 / unit)
    }
}

impl FromStr for ByteSize {
    type Err = ByteSizeError;

    fn from_str(text: &str) -> Result<Self, ByteSizeError> {
        let bad = || ByteSizeError(text.to_owned());
        let trimmed = text.trim();
        let digits = trimmed.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(trimmed.len());
        let (number, unit) = trimmed.split_at(digits);
        let unit = match unit.trim() {
            "" => 1,
            unit => UNITS.iter().find(|(name, _)| name.eq_ignore_ascii_case(unit)).ok_or_else(bad)?.1,
        };
        if let Ok(whole) = number.parse::<u64>() {
            return whole.checked_mul(unit).map(Self).ok_or_else(bad);
        }
        let bytes = number.parse::<f64>().map_err(|_| bad())? * unit as f64;
        if bytes.is_finite() && bytes >= 0.0 && bytes < u64::MAX as f64 {
            return Ok(Self(bytes as u64));
        }
        Err(bad())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_printed_is_read_back() {
        for bytes in [0, 1, 1000, 1024, 1 << 20, 3 << 20, 5 << 30, 7 << 40, u64::MAX, (1 << 30) + 1] {
            assert_eq!(ByteSize(bytes).to_string().parse(), Ok(ByteSize(bytes)));
        }
    }

    #[test]
    fn nonsense_is_refused() {
        for text in ["", "GiB", "-1", "8 GB", "99999999999 TiB", "1.2.3", "1e9", "NaN", "8GiB!"] {
            assert_eq!(text.parse::<ByteSize>(), Err(ByteSizeError(text.into())), "{text}");
        }
    }
}
