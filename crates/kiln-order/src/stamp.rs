//! Stamps: points in the work of streams, as plain numbers.

use std::fmt;

/// A stream of a runtime, as a small number. Keys are given out by the runtime and used again only when everything
/// the stream did is known to be done.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub struct StreamKey(u16);

/// Streams one runtime may have at once, imported ones included. Clocks have this many entries.
pub const MAX_STREAMS: usize = 64;

impl StreamKey {
    /// The key with that number, if it is below [`MAX_STREAMS`].
    pub fn new(index: usize) -> Option<Self> {
        (index < MAX_STREAMS).then_some(Self(index as u16))
    }

    /// Its number, below [`MAX_STREAMS`].
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// The `number`th submission of a stream. Number 0 is before all of them: nothing has to wait for it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Stamp {
    /// Whose.
    pub stream: StreamKey,
    /// Which; the first submission is 1.
    pub number: u64,
}

impl Stamp {
    /// Whether to wait for another stamp is to wait for this one.
    pub fn is_awaited_by(self, wait: Self) -> bool {
        self.stream == wait.stream && self.number <= wait.number
    }
}

impl fmt::Display for Stamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.number, self.stream.0)
    }
}

const INLINE_STAMPS: usize = 3;

/// A set of stamps with at most one per stream, the latest.
///
/// A few are kept inline; more spill to the heap, which happens only while more than three streams use one block.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Stamps {
    len: u8,
    inline: [Stamp; INLINE_STAMPS],
    spill: Vec<Stamp>,
}

impl Stamps {
    /// The set with that one stamp.
    pub fn of(stamp: Stamp) -> Self {
        let mut set = Self::default();
        set.insert(stamp);
        set
    }

    /// Adds a stamp; of two on one stream the later stays.
    pub fn insert(&mut self, stamp: Stamp) {
        if stamp.number == 0 {
            return;
        }
        let len = usize::from(self.len);
        for known in self.inline[..len].iter_mut().chain(&mut self.spill) {
            if known.stream == stamp.stream {
                known.number = known.number.max(stamp.number);
                return;
            }
        }
        if len < INLINE_STAMPS {
            self.inline[len] = stamp;
            self.len += 1;
        } else {
            self.spill.push(stamp);
        }
    }

    /// Adds a stamp, first dropping those that need not be remembered if there is no room inline.
    #[inline]
    pub fn insert_pruning(&mut self, stamp: Stamp, forget: impl Fn(Stamp) -> bool) {
        // Nearly always the stream has been here before, and often it is the only one.
        if self.len > 0 && self.inline[0].stream == stamp.stream {
            self.inline[0].number = stamp.number.max(self.inline[0].number);
            return;
        }
        if usize::from(self.len) == INLINE_STAMPS {
            self.retain(|known| !forget(known));
        }
        self.insert(stamp);
    }

    /// Makes this the set with that one stamp, keeping what was allocated.
    #[inline]
    pub fn replace(&mut self, stamp: Stamp) {
        self.clear();
        self.inline[0] = stamp;
        self.len = u8::from(stamp.number != 0);
    }

    /// Empties the set.
    #[inline]
    pub fn clear(&mut self) {
        self.len = 0;
        if !self.spill.is_empty() {
            self.spill.clear();
        }
    }

    /// Adds every stamp of another set.
    pub fn extend(&mut self, other: &Self) {
        other.iter().for_each(|stamp| self.insert(stamp));
    }

    /// The stamps.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = Stamp> + '_ {
        self.inline[..usize::from(self.len)].iter().chain(&self.spill).copied()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        usize::from(self.len) + self.spill.len()
    }

    fn retain(&mut self, keep: impl Fn(Stamp) -> bool) {
        let kept: [Stamp; INLINE_STAMPS] = self.inline;
        let len = usize::from(self.len);
        self.len = 0;
        for stamp in kept[..len].iter().copied().filter(|stamp| keep(*stamp)) {
            self.inline[usize::from(self.len)] = stamp;
            self.len += 1;
        }
        self.spill.retain(|stamp| keep(*stamp));
        while usize::from(self.len) < INLINE_STAMPS
            && let Some(stamp) = self.spill.pop()
        {
            self.inline[usize::from(self.len)] = stamp;
            self.len += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stamp(stream: usize, number: u64) -> Stamp {
        Stamp { stream: StreamKey::new(stream).unwrap(), number }
    }

    #[test]
    fn the_latest_of_each_stream_stays() {
        let mut set = Stamps::default();
        for at in [stamp(0, 3), stamp(1, 1), stamp(0, 2), stamp(2, 9), stamp(3, 4), stamp(4, 5), stamp(3, 6)]
        {
            set.insert(at);
        }
        let mut all: Vec<Stamp> = set.iter().collect();
        all.sort_by_key(|stamp| stamp.stream);
        assert_eq!(all, [stamp(0, 3), stamp(1, 1), stamp(2, 9), stamp(3, 6), stamp(4, 5)]);
    }

    #[test]
    fn pruning_makes_room_before_spilling() {
        let mut set = Stamps::default();
        (0..3).for_each(|stream| set.insert(stamp(stream, 1)));
        set.insert_pruning(stamp(7, 1), |known| known.stream.index() != 1);
        let all: Vec<Stamp> = set.iter().collect();
        assert_eq!(all, [stamp(1, 1), stamp(7, 1)]);
    }

    #[test]
    fn number_zero_is_never_remembered() {
        assert!(Stamps::of(stamp(5, 0)).is_empty());
    }
}
