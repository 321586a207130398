//! A tile: what some rows did in a part of the time, in at most a few thousand rectangles for each.
//!
//! A tile of level `l` has [`TILE_BUCKETS`] buckets that are 2 to the power of `l` nanoseconds wide. A row with little work in it is
//! sent as single works, and one with more as sums. Few works are read again from the file; many are already summed up.

use serde::Serialize;

use crate::bucket::Bucket;
use crate::bucket_store::last_ns;
use crate::gap_state::DrawnWork;

/// Buckets of a tile.
pub const TILE_BUCKETS: u64 = 512;
/// Works of a row that are sent singly.
pub const MAX_TILE_WORKS: usize = 2048;
/// The widest level.
pub(crate) const MAX_LEVEL: u32 = 54;

/// Which tile.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TileRequest {
    /// A bucket is 2 to the power of this nanoseconds wide.
    pub level: u32,
    /// The number of the tile, counted from time 0.
    pub index: u64,
    /// The first row.
    pub first_row: u32,
    /// How many rows.
    pub rows: u32,
}

/// What some rows did in a part of the time. Times are from the beginning of the tile.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct TimelineTile {
    /// The level.
    pub level: u32,
    /// The number.
    pub index: u64,
    /// When it begins.
    pub begin_ns: u64,
    /// Its rows, those that did something.
    pub rows: Vec<TileRow>,
}

/// A row of a tile.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct TileRow {
    /// The number of the row.
    pub row: u32,
    /// What it did.
    #[serde(flatten)]
    pub content: TileContent,
}

/// What a row did, in columns.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TileContent {
    /// Single works.
    Works(TileWorks),
    /// Sums.
    Sums(TileSums),
}

/// Single works, by beginning.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct TileWorks {
    /// Their numbers.
    pub number: Vec<u64>,
    /// Their names.
    pub name: Vec<u32>,
    /// When they begin.
    pub begin: Vec<i64>,
    /// How long they are.
    pub length: Vec<u64>,
    /// How long before their beginning the work before them ended.
    pub gap: Vec<u64>,
    /// How long before their beginning the host had submitted them and the stream was free.
    pub ready: Vec<u64>,
    /// The kind, 16 for a wait for another stream, 32 for a time that was measured.
    pub flags: Vec<u8>,
}

/// Sums over buckets, those that are not empty.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct TileSums {
    /// The level of the buckets, which may be wider than the tile's.
    pub level: u32,
    /// The number of the bucket in the tile.
    pub at: Vec<u32>,
    /// How long work ran in it.
    pub busy: Vec<u64>,
    /// How long work waited for other streams.
    pub wait: Vec<u64>,
    /// How much work began.
    pub starts: Vec<u32>,
    /// The name of the longest work.
    pub name: Vec<u32>,
    /// How long that is.
    pub longest: Vec<u64>,
}

impl TileRequest {
    /// From when to when; none if there is no such tile.
    pub(crate) fn span(&self) -> Option<(u64, u64)> {
        let width = TILE_BUCKETS.checked_shl(self.level).filter(|_| self.level <= MAX_LEVEL)?;
        let begin = self.index.checked_mul(width)?;
        Some((begin, begin.checked_add(width)?))
    }
}

impl TileContent {
    /// Work of a row that touches a tile, singly or summed up.
    pub(crate) fn of(works: &[DrawnWork], level: u32, begin_ns: u64) -> Self {
        if works.len() <= MAX_TILE_WORKS {
            return Self::Works(TileWorks::of(works, begin_ns));
        }
        let mut sums = vec![Bucket::default(); TILE_BUCKETS as usize];
        let first = begin_ns >> level;
        for work in works {
            each_bucket(&mut sums, level, first, (work.begin_ns, work.end_ns), |bucket, inside, begins| {
                bucket.touch(work.end_ns - work.begin_ns, work.name, inside, begins);
            });
            if let Some(waited) = work.waited() {
                each_bucket(&mut sums, level, first, waited, |bucket, inside, _| {
                    bucket.wait_ns = bucket.wait_ns.saturating_add(inside);
                });
            }
        }
        Self::Sums(TileSums::of(&sums, level))
    }
}

impl TileWorks {
    fn of(works: &[DrawnWork], begin_ns: u64) -> Self {
        let mut columns = Self::default();
        for work in works {
            columns.number.push(work.number);
            columns.name.push(work.name);
            columns.begin.push(work.begin_ns.cast_signed().wrapping_sub(begin_ns.cast_signed()));
            columns.length.push(work.end_ns - work.begin_ns);
            columns.gap.push(work.begin_ns - work.gap_ns);
            columns.ready.push(work.begin_ns - work.ready_ns);
            columns.flags.push(work.kind | u8::from(work.waits) << 4 | u8::from(work.is_timed) << 5);
        }
        columns
    }
}

impl TileSums {
    /// The sums that are not empty.
    pub(crate) fn of(sums: &[Bucket], level: u32) -> Self {
        let mut columns = Self { level, ..Self::default() };
        for (at, bucket) in (0..).zip(sums) {
            if bucket.is_empty() && bucket.wait_ns == 0 {
                continue;
            }
            columns.at.push(at);
            columns.busy.push(bucket.busy_ns);
            columns.wait.push(bucket.wait_ns);
            columns.starts.push(bucket.starts);
            columns.name.push(bucket.longest_name);
            columns.longest.push(bucket.longest_ns);
        }
        columns
    }
}

/// Calls something for every bucket that a span touches.
fn each_bucket(
    sums: &mut [Bucket],
    level: u32,
    first: u64,
    (begin, end): (u64, u64),
    mut put: impl FnMut(&mut Bucket, u64, bool),
) {
    let (from, last) = (begin >> level, last_ns(begin, end) >> level);
    for number in from.max(first)..=last.min(first + sums.len() as u64 - 1) {
        let Some(bucket) = sums.get_mut((number - first) as usize) else { return };
        let (left, right) = (number << level, (number + 1) << level);
        put(bucket, end.min(right).saturating_sub(begin.max(left)), number == from);
    }
}
