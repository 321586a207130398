//! Median and 99th percentile of measured times.

/// Median and 99th percentile.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Percentiles {
    /// The median.
    pub p50: f64,
    /// The 99th percentile.
    pub p99: f64,
}

impl Percentiles {
    /// Of single values; zeros of none.
    ///
    /// ```
    /// let spread = kiln_mem::workload::Percentiles::of((0..=100).map(f64::from).collect());
    /// assert_eq!((spread.p50, spread.p99), (50.0, 99.0));
    /// ```
    pub fn of(mut values: Vec<f64>) -> Self {
        values.sort_by(f64::total_cmp);
        let at = |percent: usize| values.get(values.len().saturating_sub(1) * percent / 100).copied();
        Self { p50: at(50).unwrap_or(0.0), p99: at(99).unwrap_or(0.0) }
    }

    /// The medians of several of them.
    pub fn median(spreads: &[Self]) -> Self {
        let middle = |values: Vec<f64>| Self::of(values).p50;
        Self {
            p50: middle(spreads.iter().map(|spread| spread.p50).collect()),
            p99: middle(spreads.iter().map(|spread| spread.p99).collect()),
        }
    }
}
