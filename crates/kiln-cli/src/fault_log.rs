//! Which planned faults have come, as the simulated devices of other processes write it to a file.

use std::collections::BTreeSet;
use std::path::Path;

/// What is said before planned faults that did not come.
pub(crate) const NOT_COME: &str = "planned, and did not come: ";

/// The places in their plan, counted from 0, of the faults that have come. A file that is not there has none.
pub(crate) fn read(file: &Path) -> BTreeSet<usize> {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    text.lines().filter_map(|line| line.parse().ok()).collect()
}
