//! Summaries of all rows, in buckets of one width.
//!
//! The memory is bounded: when there would be too many buckets, pairs of neighbours are added and all are twice as wide. Widths are
//! powers of two, so that a tile of a wider level is a sum of whole buckets.

use std::ops::Range;

use crate::bucket::Bucket;
use crate::gap_state::DrawnWork;

/// Buckets of one row.
const MAX_ROW_BUCKETS: u64 = 1 << 18;
/// Buckets of all rows: 64 MiB.
const MAX_BUCKETS: u64 = 1 << 21;
/// The first width is 2 to the power of this, in nanoseconds.
const FIRST_LEVEL: u32 = 10;

/// Summaries of all rows.
pub(crate) struct BucketStore {
    level: u32,
    rows: Vec<RowBuckets>,
}

#[derive(Default)]
struct RowBuckets {
    /// The number of the first bucket, counted from time 0.
    first: u64,
    buckets: Vec<Bucket>,
}

impl Default for BucketStore {
    fn default() -> Self {
        Self { level: FIRST_LEVEL, rows: Vec::new() }
    }
}

impl BucketStore {
    /// A bucket is 2 to the power of this nanoseconds wide.
    pub(crate) fn level(&self) -> u32 {
        self.level
    }

    /// Adds work to its row.
    pub(crate) fn add(&mut self, work: &DrawnWork) {
        let row = work.row as usize;
        if self.rows.len() <= row {
            self.rows.resize_with(row + 1, RowBuckets::default);
        }
        let (begin, end) = (work.begin_ns, work.end_ns);
        let waited = work.waited();
        self.make_room(row, waited.map_or(begin, |(from, _)| from), last_ns(begin, end));
        let level = self.level;
        let Some(row) = self.rows.get_mut(row) else { return };
        row.each(level, begin, end, |bucket, inside, begins| {
            bucket.touch(end - begin, work.name, inside, begins);
        });
        if let Some((from, to)) = waited {
            row.each(level, from, to, |bucket, inside, _| {
                bucket.wait_ns = bucket.wait_ns.saturating_add(inside);
            });
        }
    }

    /// Sums of `count` buckets of a level that is not below the own one; the first has this number.
    pub(crate) fn sums(&self, row: u32, level: u32, first: u64, count: usize) -> Vec<Bucket> {
        let mut sums = vec![Bucket::default(); count];
        let Some(row) = self.rows.get(row as usize) else { return sums };
        let wider = level.saturating_sub(self.level).min(63);
        let begin = first.saturating_mul(1 << wider).max(row.first);
        let end = first.saturating_add(count as u64).saturating_mul(1 << wider);
        let inside = row.places(begin..end);
        for (number, bucket) in (begin..).zip(row.buckets.get(inside).unwrap_or_default()) {
            let to = (number >> wider).saturating_sub(first) as usize;
            if let Some(sum) = sums.get_mut(to) {
                sum.add(bucket);
            }
        }
        sums
    }

    /// Makes sure that a row has buckets from one time to another, both included.
    fn make_room(&mut self, row: usize, begin_ns: u64, last_ns: u64) {
        loop {
            let (begin, last) = (begin_ns >> self.level, last_ns >> self.level);
            let Some(known) = self.rows.get(row) else { return };
            let now = known.buckets.len() as u64;
            let first = if now == 0 { begin } else { known.first.min(begin) };
            let end = if now == 0 { last } else { last.max(known.first + now - 1) };
            let wanted = end - first + 1;
            if wanted <= now {
                return;
            }
            let total: u64 = self.rows.iter().map(|row| row.buckets.len() as u64).sum();
            if wanted <= MAX_ROW_BUCKETS && total - now + wanted <= MAX_BUCKETS {
                let Some(row) = self.rows.get_mut(row) else { return };
                let before = if now == 0 { 0 } else { (row.first - first) as usize };
                row.buckets.splice(0..0, std::iter::repeat_n(Bucket::default(), before));
                row.buckets.resize(wanted as usize, Bucket::default());
                row.first = first;
                return;
            }
            self.widen();
        }
    }

    /// Makes all buckets twice as wide.
    fn widen(&mut self) {
        self.level += 1;
        for row in &mut self.rows {
            let mut wider: Vec<Bucket> = Vec::with_capacity(row.buckets.len() / 2 + 1);
            let first = row.first >> 1;
            for (number, bucket) in (row.first..).zip(&row.buckets) {
                let at = ((number >> 1) - first) as usize;
                match wider.get_mut(at) {
                    Some(sum) => sum.add(bucket),
                    None => wider.push(*bucket),
                }
            }
            *row = RowBuckets { first, buckets: wider };
        }
    }
}

impl RowBuckets {
    /// Calls something for every bucket that a span touches, with the time inside, and whether the span begins there.
    fn each(&mut self, level: u32, begin: u64, end: u64, mut put: impl FnMut(&mut Bucket, u64, bool)) {
        let (first, last) = (begin >> level, last_ns(begin, end) >> level);
        let places = self.places(first..last + 1);
        for (number, bucket) in (first..).zip(self.buckets.get_mut(places).unwrap_or_default()) {
            let from = number << level;
            let to = from.saturating_add(1 << level);
            put(bucket, end.min(to).saturating_sub(begin.max(from)), number == first);
        }
    }

    /// Where buckets with these numbers are, as far as there are any.
    fn places(&self, numbers: Range<u64>) -> Range<usize> {
        let place = |number: u64| (number.saturating_sub(self.first) as usize).min(self.buckets.len());
        let begin = place(numbers.start);
        begin..place(numbers.end).max(begin)
    }
}

/// The last nanosecond of a span; an empty one has that of its beginning.
pub(crate) fn last_ns(begin: u64, end: u64) -> u64 {
    end.saturating_sub(1).max(begin)
}
