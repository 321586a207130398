//! Finds the smallest device memory with which a log can be replayed.
//!
//! The log is replayed with less and less, halving the interval between an amount that did and one that did not. The
//! answer is therefore not an estimate: with it every request was met, and with one step less one was refused.

use super::allocation_log::AllocationLog;
use crate::error::Result;

/// The answer is a multiple of this: a page.
pub const SMALLEST_STEP_BYTES: u64 = 2 << 20;

/// The smallest amount of memory, up to `most_bytes`, with which `meets_all` says that every request of a log is met;
/// none if `most_bytes` is not enough.
///
/// ```
/// use kiln_mem::replay::{AllocationLog, smallest_memory};
///
/// let met = |bytes: u64| Ok(bytes >= 123 << 20);
/// assert_eq!(smallest_memory(&AllocationLog::default(), 1 << 30, met)?, Some(124 << 20));
/// # Ok::<(), kiln_mem::Error>(())
/// ```
///
/// # Errors
/// Whatever `meets_all` says.
pub fn smallest_memory(
    log: &AllocationLog,
    most_bytes: u64,
    mut meets_all: impl FnMut(u64) -> Result<bool>,
) -> Result<Option<u64>> {
    let bytes = |steps: u64| steps.saturating_mul(SMALLEST_STEP_BYTES);
    let mut enough = most_bytes.div_ceil(SMALLEST_STEP_BYTES);
    if !meets_all(bytes(enough))? {
        return Ok(None);
    }
    // Less than what is live at once cannot be enough, and nothing never is.
    let mut too_little = log.peak_bytes().saturating_sub(1) / SMALLEST_STEP_BYTES;
    while enough - too_little.min(enough) > 1 {
        let middle = too_little + (enough - too_little) / 2;
        if meets_all(bytes(middle))? {
            enough = middle;
        } else {
            too_little = middle;
        }
    }
    Ok(Some(bytes(enough)))
}
