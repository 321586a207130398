//! What was folded in which state, so that a program that repeats itself need not look for frames again.
//!
//! Which frames are chosen depends on which pieces are free and on how many pages are wanted. Where both are as they were
//! when a fold was made, the fold is found by that state alone; its pieces are then looked up by their numbers, or by their
//! addresses where a number has gone to another piece, and if one of them is not there, frames are looked for as if nothing
//! had been remembered. Nothing depends on two states never looking alike.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;

use super::choose::FrameRow;
use super::folds::KeyHasher;

/// Folds that are remembered; with more, all are forgotten, and what still happens is remembered again.
const MOST_FOLDS: usize = 1 << 15;
/// ... and pieces of them.
const MOST_SOURCES: usize = 1 << 18;

/// Folds by the state of the arena they were made in.
#[derive(Debug, Default)]
pub(crate) struct Habits {
    folds: HashMap<u64, Remembered, BuildHasherDefault<KeyHasher>>,
    /// The pieces of all of them, one fold after the other.
    sources: Vec<Source>,
}

/// A free piece, and the frames that were taken from it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Source {
    pub(crate) start: u64,
    pub(crate) units: u32,
    /// The piece that had these addresses, and may well have them again.
    pub(crate) piece: u32,
    pub(crate) row: FrameRow,
}

#[derive(Clone, Copy, Debug)]
struct Remembered {
    fold: u32,
    from: u32,
    end: u32,
}

impl Habits {
    /// The fold that was made in a state, and where its frames were.
    #[inline]
    pub(crate) fn recall(&self, state: u64) -> Option<(u32, &[Source])> {
        let Remembered { fold, from, end } = *self.folds.get(&state)?;
        Some((fold, self.sources.get(from as usize..end as usize)?))
    }

    /// Remembers where the frames of a fold were.
    pub(crate) fn remember(&mut self, state: u64, fold: u32, sources: impl Iterator<Item = Source>) {
        if self.folds.len() >= MOST_FOLDS || self.sources.len() >= MOST_SOURCES {
            self.clear();
        }
        let from = self.sources.len() as u32;
        self.sources.extend(sources);
        self.folds.insert(state, Remembered { fold, from, end: self.sources.len() as u32 });
    }

    /// Forgets everything: folds or frames are going away.
    pub(crate) fn clear(&mut self) {
        self.folds.clear();
        self.sources.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(start: u64) -> Source {
        let row = FrameRow { first_page: 0, pages: 1, hint: (0, 0, 1), is_first: true, is_last: true };
        Source { start, units: 8192, piece: 1, row }
    }

    #[test]
    fn the_newest_of_a_state_is_recalled_until_all_is_forgotten() {
        let mut habits = Habits::default();
        habits.remember(7, 1, [source(0), source(8192)].into_iter());
        habits.remember(8, 2, [source(5)].into_iter());
        habits.remember(7, 3, [source(1)].into_iter());
        assert_eq!(habits.recall(7), Some((3, &[source(1)][..])));
        assert_eq!(habits.recall(8), Some((2, &[source(5)][..])));
        assert_eq!(habits.recall(9), None);
        habits.clear();
        assert_eq!(habits.recall(8), None);
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut habits = Habits::default();
        for state in 0..3 * MOST_FOLDS as u64 {
            habits.remember(state, 0, (0..20).map(source));
        }
        assert!(habits.folds.len() <= MOST_FOLDS && habits.sources.len() < MOST_SOURCES + 20);
        let newest = 3 * MOST_FOLDS as u64 - 1;
        assert_eq!(habits.recall(newest).map(|(_, sources)| sources.len()), Some(20));
    }
}
