//! Names of streams: small numbers that clocks are indexed by.

use std::fmt;

use kiln_driver::StreamId;

/// Streams one order may have at once, imported ones included. Clocks have this many entries.
pub const MAX_STREAMS: usize = 64;

/// A stream of an order, as a small number below [`MAX_STREAMS`]. The order gives keys out, and gives one out again when everything that
/// was done under it is known to be done or comes before whatever the next stream does.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub struct StreamKey(u16);

/// A number that is no key of a stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{number} is no stream key; an order has at most {MAX_STREAMS} streams, with keys from 0 on")]
pub struct NoSuchStreamKey {
    /// The number.
    pub number: usize,
}

impl StreamKey {
    pub(crate) const FIRST: Self = Self(0);

    /// The key with that number. It names a stream only if an order gave it out.
    ///
    /// ```
    /// use kiln_order::{MAX_STREAMS, StreamKey};
    ///
    /// assert_eq!(StreamKey::new(3)?.index(), 3);
    /// assert!(StreamKey::new(MAX_STREAMS).is_err() && StreamKey::new(usize::MAX).is_err());
    /// # Ok::<(), kiln_order::NoSuchStreamKey>(())
    /// ```
    ///
    /// # Errors
    /// If it is not below [`MAX_STREAMS`].
    #[inline]
    pub fn new(number: usize) -> Result<Self, NoSuchStreamKey> {
        if number < MAX_STREAMS { Ok(Self(number as u16)) } else { Err(NoSuchStreamKey { number }) }
    }

    /// All keys there are.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..MAX_STREAMS as u16).map(Self)
    }

    /// Its number, below [`MAX_STREAMS`].
    #[inline]
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

impl fmt::Display for StreamKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "stream {}", self.0)
    }
}

/// A stream of an order: the key its submissions are numbered under, and the handle commands go to. Given out by the order that knows
/// both, so that they belong together.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct StreamRef {
    key: StreamKey,
    id: StreamId,
}

impl StreamRef {
    pub(crate) fn new(key: StreamKey, id: StreamId) -> Self {
        Self { key, id }
    }

    /// Its key in the order.
    #[inline]
    pub fn key(self) -> StreamKey {
        self.key
    }

    /// Its handle at the driver.
    #[inline]
    pub fn id(self) -> StreamId {
        self.id
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_beyond_the_last_key_is_refused_with_what_is_allowed() {
        assert_eq!(StreamKey::all().count(), MAX_STREAMS);
        assert!(
            StreamKey::all().enumerate().all(|(at, key)| StreamKey::new(at) == Ok(key) && key.index() == at)
        );
        for number in [MAX_STREAMS, u32::MAX as usize, usize::MAX] {
            let error = StreamKey::new(number).unwrap_err();
            assert_eq!(error, NoSuchStreamKey { number });
            assert!(error.to_string().contains("at most 64 streams"), "{error}");
        }
    }
}
