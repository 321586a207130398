//! Fallible growth of host collections: too little host memory is an error, not an abort.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher, Hash};

/// The host has no memory for a table or for the record of a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the host has no {bytes} bytes for the tables of a memory resource; free host memory and try again")]
pub struct HostOutOfMemory {
    /// How many bytes were asked for, at least.
    pub bytes: usize,
}

impl HostOutOfMemory {
    fn for_entries<T>(count: usize) -> Self {
        Self { bytes: count.saturating_mul(size_of::<T>()) }
    }
}

/// A table that grows.
pub(crate) trait TryGrow {
    /// Makes room for more entries: adding as many allocates nothing.
    fn try_grow(&mut self, count: usize) -> Result<(), HostOutOfMemory>;
}

impl<T> TryGrow for Vec<T> {
    #[inline]
    fn try_grow(&mut self, count: usize) -> Result<(), HostOutOfMemory> {
        self.try_reserve(count).map_err(|_| HostOutOfMemory::for_entries::<T>(count))
    }
}

impl<T> TryGrow for VecDeque<T> {
    #[inline]
    fn try_grow(&mut self, count: usize) -> Result<(), HostOutOfMemory> {
        self.try_reserve(count).map_err(|_| HostOutOfMemory::for_entries::<T>(count))
    }
}

impl<K: Eq + Hash, V, S: BuildHasher> TryGrow for HashMap<K, V, S> {
    #[inline]
    fn try_grow(&mut self, count: usize) -> Result<(), HostOutOfMemory> {
        self.try_reserve(count).map_err(|_| HostOutOfMemory::for_entries::<(K, V)>(count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_than_any_host_has_is_refused_and_changes_nothing() {
        let mut list = vec![1_u64];
        let refused = list.try_grow(usize::MAX / 16).unwrap_err();
        assert_eq!(refused.bytes, usize::MAX / 16 * 8);
        assert_eq!(list, [1]);
        assert!(VecDeque::<u64>::new().try_grow(usize::MAX / 16).is_err());
        assert!(HashMap::<u64, u64>::new().try_grow(usize::MAX / 64).is_err());
        assert_eq!(list.try_grow(usize::MAX).unwrap_err().bytes, usize::MAX, "a size that cannot be counted");
    }
}
