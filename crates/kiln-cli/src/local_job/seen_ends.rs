//! Which ranks a rank saw end, and which it waited for in vain.
//!
//! A rank that panics leaves its job at once and may need long to end: ranks that fail because of that end before it. Each rank notes which others it saw end before its program can hear of
//! that, so what is in its notes when it has failed may be why.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// How often a rank saw others end: each process of a rank ends once.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(super) struct SeenEnds {
    counts: BTreeMap<u32, u32>,
    /// Those of which the last one did not leave as planned.
    lost: Vec<u32>,
    /// Those that did not come to what it waited in, and have not since.
    late: Vec<u32>,
}

impl SeenEnds {
    /// Reads the notes of a rank that has ended; none if it has made none.
    pub(super) fn read(file: &Path) -> Self {
        Self::parse(&fs::read_to_string(file).unwrap_or_default())
    }

    fn parse(notes: &str) -> Self {
        let mut seen = Self::default();
        for line in notes.lines() {
            let Some((how, Ok(rank))) = line.split_once(' ').map(|(how, rank)| (how, rank.parse())) else {
                continue;
            };
            if how == "late" || how == "came" {
                seen.late.retain(|late| *late != rank);
                seen.late.extend((how == "late").then_some(rank));
                continue;
            }
            *seen.counts.entry(rank).or_default() += 1;
            seen.lost.retain(|lost| *lost != rank);
            if how == "lost" {
                seen.lost.push(rank);
            }
        }
        seen
    }

    /// Whether it saw the last of so many processes of a rank end, or one that has not ended for the launcher.
    pub(super) fn has(&self, rank: u32, ended: u32) -> bool {
        let count = self.counts.get(&rank).copied().unwrap_or(0);
        count > 0 && count >= ended
    }

    /// Whether the last process of a rank that it saw end was lost.
    pub(super) fn has_lost(&self, rank: u32) -> bool {
        self.lost.contains(&rank)
    }

    /// Ranks of which the last process that it saw end had left as planned.
    pub(super) fn left(&self) -> impl Iterator<Item = u32> {
        self.counts.keys().copied().filter(|rank| !self.has_lost(*rank))
    }

    /// Ranks that it waited for in vain before it ended, and of which it saw no process end.
    pub(super) fn late(&self) -> impl Iterator<Item = u32> {
        self.late.iter().copied().filter(|rank| !self.counts.contains_key(rank))
    }

    /// Ranks of which it saw a process end, where `ended` says how many have, that the launcher still waits for; and whether it was lost.
    pub(super) fn awaited(&self, ended: impl Fn(u32) -> u32) -> impl Iterator<Item = (u32, bool)> {
        let awaited = self.counts.iter().filter(move |(rank, count)| **count > ended(**rank));
        awaited.map(|(rank, _)| (*rank, self.lost.contains(rank)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_is_awaited_until_the_launcher_has_seen_it() {
        let seen = SeenEnds::parse("left 3\nlost 1\nlost 1\nwhat 2 x\n\nlost");
        let awaited = |ended: u32| seen.awaited(|_| ended).collect::<Vec<_>>();
        assert_eq!(awaited(0), [(1, true), (3, false)]);
        assert_eq!(awaited(1), [(1, true)]);
        assert_eq!(awaited(2), []);
        assert!(seen.has(1, 2) && !seen.has(1, 3) && !seen.has(0, 0) && !seen.has(2, 0));
        assert_eq!(seen.left().collect::<Vec<_>>(), [3]);
        let seen = SeenEnds::parse("late 2\nlate 3\ncame 2\nlate 4\nlost 4\nlate 3");
        assert_eq!((seen.late().collect::<Vec<_>>(), seen.has(3, 0)), (vec![3], false));
        assert_eq!(SeenEnds::read(Path::new("/nowhere/at/all")), SeenEnds::default());
    }
}
