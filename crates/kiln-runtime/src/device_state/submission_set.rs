//! Sets of submissions that lie mostly side by side.

use std::collections::BTreeMap;

use kiln_order::{Stamp, StreamKey};

/// Submissions of any streams, as runs of numbers.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct SubmissionSet {
    /// The last of each run, by its stream and its first.
    last: BTreeMap<(StreamKey, u64), u64>,
}

impl SubmissionSet {
    /// Adds a submission.
    pub(crate) fn push(&mut self, stamp: Stamp) {
        let Stamp { stream, number } = stamp;
        let before = self.last.range_mut(..=(stream, number)).next_back();
        let joined = match before {
            Some(((key, first), last)) if *key == stream && last.saturating_add(1) >= number => {
                *last = number.max(*last);
                (*first, *last)
            }
            _ => {
                self.last.insert((stream, number), number);
                (number, number)
            }
        };
        if let Some(last) = self.last.remove(&(stream, joined.1.saturating_add(1))) {
            self.last.insert((stream, joined.0), last);
        }
    }

    /// Whether a submission is among them.
    pub(crate) fn contains(&self, stamp: Stamp) -> bool {
        let Stamp { stream, number } = stamp;
        let before = self.last.range(..=(stream, number)).next_back();
        before.is_some_and(|((key, _), last)| *key == stream && number <= *last)
    }

    /// How many of a stream there are.
    pub(crate) fn count(&self, stream: StreamKey) -> u64 {
        let of_stream = self.last.range((stream, 0)..=(stream, u64::MAX));
        of_stream.map(|((_, first), last)| last - first + 1).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_grow_at_both_ends_and_stay_within_their_stream() {
        let stamp = |stream, number| Stamp { stream: StreamKey::new(stream).unwrap(), number };
        let mut runs = SubmissionSet::default();
        for (stream, number) in [(1, 5), (1, 7), (0, 6), (1, 6), (1, 4), (1, 9), (1, 6), (2, 8)] {
            runs.push(stamp(stream, number));
        }
        let within = |stream| (0..12).filter(|number| runs.contains(stamp(stream, *number))).collect();
        let found: [Vec<u64>; 4] = [0, 1, 2, 3].map(within);
        assert_eq!(found, [vec![6], vec![4, 5, 6, 7, 9], vec![8], vec![]]);
        assert_eq!([0, 1, 2, 3].map(|stream| runs.count(StreamKey::new(stream).unwrap())), [1, 5, 1, 0]);
        assert_eq!(runs.last.len(), 4, "{runs:?}");
    }
}
