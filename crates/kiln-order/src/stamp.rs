//! Stamps: points in the work of streams, as plain numbers.

use std::fmt;

use crate::stream_key::StreamKey;

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
        write!(f, "submission {} on {}", self.number, self.stream)
    }
}

const INLINE_STAMPS: usize = 3;

/// A set of stamps with at most one for each stream, the latest.
///
/// A few are kept inline; more spill to the heap, which happens only while more than three streams use one block.
///
/// ```
/// use kiln_order::{Stamp, Stamps, StreamKey};
///
/// let stream = StreamKey::new(3)?;
/// let mut uses = Stamps::NONE;
/// uses.insert(Stamp { stream, number: 7 });
/// uses.insert(Stamp { stream, number: 5 });
/// assert_eq!(uses, Stamps::from(Stamp { stream, number: 7 }));
/// # Ok::<(), kiln_order::NoSuchStreamKey>(())
/// ```
#[derive(Clone)]
pub struct Stamps {
    len: u8,
    inline: [Stamp; INLINE_STAMPS],
    spill: Vec<Stamp>,
}

impl Stamps {
    /// The empty set.
    pub const NONE: Self = Self {
        len: 0,
        inline: [Stamp { stream: StreamKey::FIRST, number: 0 }; INLINE_STAMPS],
        spill: Vec::new(),
    };

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
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        usize::from(self.len) + self.spill.len()
    }

    /// Keeps the stamps that a condition holds for.
    pub fn retain(&mut self, mut keep: impl FnMut(Stamp) -> bool) {
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

impl Default for Stamps {
    fn default() -> Self {
        Self::NONE
    }
}

impl From<Stamp> for Stamps {
    fn from(stamp: Stamp) -> Self {
        let mut set = Self::NONE;
        set.insert(stamp);
        set
    }
}

impl PartialEq for Stamps {
    /// Two sets are equal that hold the same stamps, in whichever order they came.
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len() && self.iter().all(|stamp| other.iter().any(|known| known == stamp))
    }
}

impl Eq for Stamps {}

impl fmt::Debug for Stamps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
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
        assert!(Stamps::from(stamp(5, 0)).is_empty());
    }

    #[test]
    fn sets_are_equal_by_what_they_hold() {
        let mut set = Stamps::from(stamp(1, 1));
        set.insert(stamp(2, 2));
        let mut other = Stamps::from(stamp(3, 9));
        other.replace(stamp(2, 2));
        assert_ne!(set, other);
        other.insert(stamp(1, 1));
        assert_eq!(set, other);
        set.retain(|stamp| stamp.number == 2);
        assert_eq!(set, Stamps::from(stamp(2, 2)));
    }
}
