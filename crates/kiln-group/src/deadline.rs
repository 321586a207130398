//! Times that a wait ends at.

use std::time::{Duration, Instant};

/// A limit that is as good as none.
const A_YEAR: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// The time so much after another; a year after it, if no clock goes that far.
pub(crate) fn after(start: Instant, limit: Duration) -> Instant {
    start.checked_add(limit).unwrap_or_else(|| start + A_YEAR)
}
