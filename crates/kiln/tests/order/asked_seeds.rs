//! Which seeds a test runs: its own, or those that are asked for from outside.

use std::ops::Range;

/// Seeds of one test, unless `KILN_FIRST_SEED` and `KILN_SEEDS` ask for others.
pub(crate) fn seeds(default: u64) -> Range<u64> {
    let from = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let start = from("KILN_FIRST_SEED").unwrap_or(0);
    start..start + from("KILN_SEEDS").unwrap_or(default)
}
