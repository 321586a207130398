//! Where the times of submissions and waits go that are published through the crate `metrics`.

use metrics::Histogram;

/// The histograms of one runtime.
pub(crate) struct Metered {
    pub(crate) submissions: Histogram,
    pub(crate) waits: Histogram,
}
