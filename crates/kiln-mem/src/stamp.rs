//! When memory was last used: a stream and a number on it.
//!
//! The heap does not order anything. It is told, with each free, which submissions may still use the block, and asks
//! an [`Order`](crate::Order) whether another stream already runs after them. These are the values it asks with: plain
//! numbers, copied, never allocated.

use std::fmt;

use kiln_driver::StreamId;

/// A stream's number among all streams of an order; never used twice.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct StreamKey(u32);

impl StreamKey {
    /// The key with this number. Whoever keeps the order gives numbers out, from 0 on.
    pub fn new(number: u32) -> Self {
        Self(number)
    }

    /// The number.
    pub fn number(self) -> u32 {
        self.0
    }
}

impl fmt::Display for StreamKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "stream {}", self.0)
    }
}

/// A stream, as memory needs to know it: the key its uses are counted under, and the handle commands go to.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct StreamRef {
    /// Its number in the order.
    pub key: StreamKey,
    /// Its handle.
    pub id: StreamId,
}

/// A submission on a stream.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Stamp {
    /// The stream.
    pub stream: StreamKey,
    /// The number of the submission; 0 is before the first.
    pub number: u64,
}

impl fmt::Display for Stamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "submission {} on {}", self.number, self.stream)
    }
}

/// The last uses of a block on streams other than its own, one stamp for each stream.
///
/// Whatever was submitted to the block's own stream before it is freed counts as a use without being named.
///
/// ```
/// use kiln_mem::{Stamp, Stamps, StreamKey};
///
/// let stream = StreamKey::new(3);
/// let mut uses = Stamps::NONE;
/// uses.add(Stamp { stream, number: 7 })?;
/// uses.add(Stamp { stream, number: 5 })?;
/// assert_eq!(uses.as_slice(), [Stamp { stream, number: 7 }]);
/// # Ok::<(), kiln_mem::TooManyStreams>(())
/// ```
#[derive(Clone, Copy)]
pub struct Stamps {
    stamps: [Stamp; Self::CAPACITY],
    len: u8,
}

/// More streams used a block than [`Stamps`] can name. Make one of them wait for another
/// ([`Order::wait_on`](crate::Order::wait_on)); its next submission then stands for both.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "more than {} streams used one block; make one of them wait for another, then free",
    Stamps::CAPACITY
)]
pub struct TooManyStreams;

impl Stamps {
    /// How many streams can be named.
    pub const CAPACITY: usize = 4;

    /// No uses on other streams.
    pub const NONE: Self =
        Self { stamps: [Stamp { stream: StreamKey(0), number: 0 }; Self::CAPACITY], len: 0 };

    /// Adds a use; an earlier one on the same stream is forgotten.
    ///
    /// # Errors
    /// If it is one stream too many; nothing is changed then.
    pub fn add(&mut self, stamp: Stamp) -> Result<(), TooManyStreams> {
        let len = usize::from(self.len);
        if let Some(known) = self.stamps[..len].iter_mut().find(|known| known.stream == stamp.stream) {
            known.number = known.number.max(stamp.number);
            return Ok(());
        }
        *self.stamps.get_mut(len).ok_or(TooManyStreams)? = stamp;
        self.len += 1;
        Ok(())
    }

    /// The stamps.
    pub fn as_slice(&self) -> &[Stamp] {
        &self.stamps[..usize::from(self.len)]
    }

    /// Whether there are none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Keeps the stamps that a condition holds for.
    pub fn retain(&mut self, mut keep: impl FnMut(Stamp) -> bool) {
        let mut kept = Self::NONE;
        for stamp in self.as_slice().iter().filter(|stamp| keep(**stamp)) {
            kept.stamps[usize::from(kept.len)] = *stamp;
            kept.len += 1;
        }
        *self = kept;
    }
}

impl Default for Stamps {
    fn default() -> Self {
        Self::NONE
    }
}

impl PartialEq for Stamps {
    fn eq(&self, other: &Self) -> bool {
        self.as_slice() == other.as_slice()
    }
}

impl Eq for Stamps {}

impl fmt::Debug for Stamps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.as_slice()).finish()
    }
}

impl From<Stamp> for Stamps {
    fn from(stamp: Stamp) -> Self {
        let mut stamps = Self::NONE;
        stamps.stamps[0] = stamp;
        stamps.len = 1;
        stamps
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_stream_too_many_is_said_and_changes_nothing() {
        let mut stamps = Stamps::NONE;
        for stream in 0..Stamps::CAPACITY as u32 {
            stamps.add(Stamp { stream: StreamKey(stream), number: 1 }).unwrap();
        }
        let before = stamps;
        assert_eq!(stamps.add(Stamp { stream: StreamKey(9), number: 1 }), Err(TooManyStreams));
        assert_eq!(stamps, before);
        stamps.add(Stamp { stream: StreamKey(0), number: 8 }).unwrap();
        stamps.retain(|stamp| stamp.number == 8);
        assert_eq!(stamps, Stamps::from(Stamp { stream: StreamKey(0), number: 8 }));
    }
}
