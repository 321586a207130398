//! Which parts of a reservation have mapped pages. Knows no driver.
//!
//! The driver maps and unmaps whole handles only, and an access to an address without pages loses the device. This table refuses both before the
//! driver is called.

use std::collections::BTreeMap;

use kiln_driver::Protection;

/// The mappings of one reservation, by offset.
#[derive(Debug, Default)]
pub(crate) struct Mappings {
    spans: BTreeMap<u64, Span>,
    closed: bool,
}

/// One handle, mapped whole.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Span {
    bytes: u64,
    protection: Protection,
}

/// Mappings without a gap between them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Run {
    pub(crate) offset: u64,
    pub(crate) bytes: u64,
}

/// Why a range cannot be used as asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub(crate) enum Unfit {
    #[error("something is mapped at offset {0} already")]
    Taken(u64),
    #[error("the mapping at offset {0} would be cut")]
    Cut(u64),
    #[error("nothing is mapped at offset {0}")]
    Hole(u64),
    #[error("the mapping at offset {0} may only be read")]
    ReadOnly(u64),
    #[error("the reservation is being destroyed")]
    Closed,
}

impl Mappings {
    /// Whether a range is free to be mapped.
    pub(crate) fn check_free(&self, offset: u64, bytes: u64) -> Result<(), Unfit> {
        if self.closed {
            return Err(Unfit::Closed);
        }
        match self.spans.range(..offset + bytes).next_back() {
            Some((at, span)) if at + span.bytes > offset => Err(Unfit::Taken(*at)),
            _ => Ok(()),
        }
    }

    /// Records one mapping in a free range.
    pub(crate) fn insert(&mut self, offset: u64, bytes: u64, protection: Protection) {
        self.spans.insert(offset, Span { bytes, protection });
    }

    /// The mappings in a range, in runs without gaps; none of them may be cut, and there must be at least one.
    pub(crate) fn runs(&self, offset: u64, bytes: u64) -> Result<Vec<Run>, Unfit> {
        let end = offset + bytes;
        if let Some((at, _)) =
            self.spans.range(..offset).next_back().filter(|(at, span)| *at + span.bytes > offset)
        {
            return Err(Unfit::Cut(*at));
        }
        let mut runs: Vec<Run> = Vec::new();
        for (at, span) in self.spans.range(offset..end) {
            if at + span.bytes > end {
                return Err(Unfit::Cut(*at));
            }
            match runs.last_mut() {
                Some(run) if run.offset + run.bytes == *at => run.bytes += span.bytes,
                _ => runs.push(Run { offset: *at, bytes: span.bytes }),
            }
        }
        if runs.is_empty() { Err(Unfit::Hole(offset)) } else { Ok(runs) }
    }

    /// Whether a range consists of whole mappings without a gap.
    pub(crate) fn check_whole(&self, offset: u64, bytes: u64) -> Result<(), Unfit> {
        match self.runs(offset, bytes)?.first() {
            Some(run) if run.offset > offset => Err(Unfit::Hole(offset)),
            Some(run) if run.bytes < bytes => Err(Unfit::Hole(run.offset + run.bytes)),
            _ => Ok(()),
        }
    }

    /// Whether every byte of a range can be read, or written, by a copy.
    pub(crate) fn check_access(&self, offset: u64, bytes: u64, writes: bool) -> Result<(), Unfit> {
        let end = offset + bytes;
        let mut reached = offset;
        let first = self.spans.range(..=offset).next_back().map_or(offset, |(at, _)| *at);
        for (at, span) in self.spans.range(first..end) {
            if *at > reached {
                break;
            }
            if at + span.bytes > reached && writes && span.protection == Protection::Read {
                return Err(Unfit::ReadOnly(*at));
            }
            reached = reached.max(at + span.bytes);
        }
        if reached < end { Err(Unfit::Hole(reached)) } else { Ok(()) }
    }

    /// Takes the mappings of a run out; they come back in case they must be put in again.
    pub(crate) fn remove(&mut self, run: Run) -> Vec<(u64, u64, Protection)> {
        let inside: Vec<u64> =
            self.spans.range(run.offset..run.offset + run.bytes).map(|(at, _)| *at).collect();
        inside
            .into_iter()
            .filter_map(|at| self.spans.remove(&at).map(|span| (at, span.bytes, span.protection)))
            .collect()
    }

    /// Changes what may be done to the mappings in a range.
    pub(crate) fn protect(&mut self, offset: u64, bytes: u64, protection: Protection) {
        self.spans.range_mut(offset..offset + bytes).for_each(|(_, span)| span.protection = protection);
    }

    /// Refuses all further mappings, if there are none now.
    pub(crate) fn close(&mut self) -> bool {
        self.closed = self.spans.is_empty();
        self.closed
    }

    /// Every run there is.
    pub(crate) fn all(&self) -> Vec<Run> {
        self.runs(0, u64::MAX).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const READ: Protection = Protection::Read;
    const WRITE: Protection = Protection::ReadWrite;

    /// 10..20 and 20..40 side by side, 60..70 apart and read-only.
    fn three() -> Mappings {
        let mut mappings = Mappings::default();
        mappings.insert(10, 10, WRITE);
        mappings.insert(20, 20, WRITE);
        mappings.insert(60, 10, READ);
        mappings
    }

    #[test]
    fn only_free_ranges_may_be_mapped() {
        let mappings = three();
        for (offset, bytes, answer) in [
            (0, 10, Ok(())),
            (40, 20, Ok(())),
            (70, 5, Ok(())),
            (0, 11, Err(Unfit::Taken(10))),
            (15, 1, Err(Unfit::Taken(10))),
            (30, 100, Err(Unfit::Taken(60))),
            (0, 100, Err(Unfit::Taken(60))),
        ] {
            assert_eq!(mappings.check_free(offset, bytes), answer, "{offset} {bytes}");
        }
    }

    #[test]
    fn unmapping_takes_whole_mappings_with_or_without_gaps() {
        let mappings = three();
        let run = |offset, bytes| Run { offset, bytes };
        assert_eq!(mappings.runs(10, 10), Ok(vec![run(10, 10)]));
        assert_eq!(mappings.runs(0, 100), Ok(vec![run(10, 30), run(60, 10)]));
        assert_eq!(mappings.runs(15, 5), Err(Unfit::Cut(10)));
        assert_eq!(mappings.runs(10, 15), Err(Unfit::Cut(20)));
        assert_eq!(mappings.runs(40, 20), Err(Unfit::Hole(40)));
        assert_eq!(mappings.all(), vec![run(10, 30), run(60, 10)]);
    }

    #[test]
    fn protecting_takes_whole_mappings_without_gaps() {
        let mut mappings = three();
        assert_eq!(mappings.check_whole(10, 30), Ok(()));
        assert_eq!(mappings.check_whole(0, 40), Err(Unfit::Hole(0)));
        assert_eq!(mappings.check_whole(10, 60), Err(Unfit::Hole(40)));
        assert_eq!(mappings.check_whole(10, 20), Err(Unfit::Cut(20)));
        mappings.protect(20, 20, READ);
        assert_eq!(mappings.check_access(10, 10, true), Ok(()));
        assert_eq!(mappings.check_access(10, 11, true), Err(Unfit::ReadOnly(20)));
        assert_eq!(mappings.check_access(10, 30, false), Ok(()));
    }

    #[test]
    fn a_copy_needs_every_byte() {
        let mappings = three();
        assert_eq!(mappings.check_access(12, 28, true), Ok(()));
        assert_eq!(mappings.check_access(12, 29, true), Err(Unfit::Hole(40)));
        assert_eq!(mappings.check_access(5, 10, false), Err(Unfit::Hole(5)));
        assert_eq!(mappings.check_access(60, 10, false), Ok(()));
        assert_eq!(mappings.check_access(65, 1, true), Err(Unfit::ReadOnly(60)));
        assert_eq!(mappings.check_access(80, 1, false), Err(Unfit::Hole(80)));
    }

    #[test]
    fn what_is_removed_can_be_put_back() {
        let mut mappings = three();
        let before = mappings.all();
        let removed = mappings.remove(Run { offset: 10, bytes: 30 });
        assert_eq!(removed, vec![(10, 10, WRITE), (20, 20, WRITE)]);
        assert_eq!(mappings.check_free(0, 60), Ok(()));
        removed.into_iter().for_each(|(at, bytes, protection)| mappings.insert(at, bytes, protection));
        assert_eq!(mappings.all(), before);
        assert!(!mappings.close());
    }

    #[test]
    fn a_closed_reservation_takes_no_mapping() {
        let mut mappings = Mappings::default();
        assert!(mappings.close());
        assert_eq!(mappings.check_free(0, 1), Err(Unfit::Closed));
    }
}
