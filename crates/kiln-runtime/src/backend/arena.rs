//! Buffers that are used again.
//!
//! Allocating costs tens of microseconds and more, so a buffer that is given back stays on a shelf for the next one of
//! about its size. The runtime remembers the last uses of a shelved buffer as of any other, so the next user, on
//! whatever stream, is ordered after them, and giving back never waits. The shelves hold so many bytes and no more; what
//! exceeds that, and what is trimmed, is freed after its last use.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::parts::BackendParts;
use crate::buffer::{Element, GpuRef};
use crate::error::{Error, Misuse, Result};

/// The smallest bucket.
const MIN_BUCKET_BYTES: usize = 256;

/// How much an arena may keep.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ArenaConfig {
    /// Bytes on the shelves at most; buffers in use do not count.
    pub max_kept_bytes: u64,
}

impl Default for ArenaConfig {
    fn default() -> Self {
        Self { max_kept_bytes: 256 << 20 }
    }
}

/// What an arena holds right now.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ArenaUsage {
    /// Bytes in buffers that are in use.
    pub lent_bytes: u64,
    /// Bytes on the shelves.
    pub kept_bytes: u64,
}

/// Reusable buffers of one backend.
pub struct Arena {
    parts: BackendParts,
    config: ArenaConfig,
    shelves: Mutex<Shelves>,
}

#[derive(Default)]
struct Shelves {
    /// By the size of the bucket.
    free: BTreeMap<u64, Vec<GpuRef<u8>>>,
    usage: ArenaUsage,
}

/// A buffer of an arena, to be used like the [`GpuRef`] it is; dropping it puts it back.
///
/// A clone of the handle that outlives this value keeps the memory for itself: it then does not go back on the shelf.
pub struct ArenaBuffer<T: Element> {
    arena: Arc<Arena>,
    /// The elements asked for; none only while this value is dropped.
    elements: Option<GpuRef<T>>,
    /// The whole bucket they lie in; likewise.
    bucket: Option<GpuRef<u8>>,
}

impl Arena {
    pub(super) fn new(parts: BackendParts, config: ArenaConfig) -> Arc<Self> {
        Arc::new(Self { parts, config, shelves: Mutex::default() })
    }

    /// A buffer for `len` elements, used before or new, with nothing known of its contents.
    ///
    /// # Errors
    /// Out of memory, also after everything on the shelves was freed; more bytes than there can be.
    pub fn take<T: Element>(self: &Arc<Self>, len: usize) -> Result<ArenaBuffer<T>> {
        let too_large = || Error::new(Misuse::TooLarge { len, element_bytes: size_of::<T>() });
        let bytes = len.checked_mul(size_of::<T>()).ok_or_else(too_large)?;
        let bucket_bytes = bucket_bytes(bytes);
        let shelved = self.shelves().lend(bucket_bytes as u64);
        let bucket = match shelved {
            Some(bucket) => bucket,
            None => self.allocate(bucket_bytes)?,
        };
        let mut buffer =
            ArenaBuffer { arena: Arc::clone(self), elements: None, bucket: Some(bucket.clone()) };
        buffer.elements = Some(bucket.view(..bytes)?.cast()?);
        Ok(buffer)
    }

    /// What it holds right now.
    pub fn usage(&self) -> ArenaUsage {
        self.shelves().usage
    }

    /// Frees shelved buffers, the largest first, until at most so many bytes are kept.
    pub fn trim(&self, keep_bytes: u64) {
        let surplus = self.shelves().surplus(keep_bytes);
        // Freeing asks the driver, so it happens here, with the lock given back.
        drop(surplus);
    }

    fn allocate(&self, bytes: usize) -> Result<GpuRef<u8>> {
        let runtime = self.parts.runtime();
        let allocate = || runtime.allocate_on(self.parts.stream(), bytes);
        let bucket = match allocate() {
            Err(error) if error.is_oom() && self.usage().kept_bytes > 0 => {
                self.trim(0);
                // What was just freed comes back when its last use is done.
                runtime.synchronize()?;
                runtime.reap_pending()?;
                allocate()?
            }
            answer => answer?,
        };
        self.shelves().usage.lent_bytes += bucket.bytes();
        Ok(bucket)
    }

    fn put_back(&self, bucket: GpuRef<u8>) {
        let surplus = {
            let mut shelves = self.shelves();
            shelves.usage.lent_bytes -= bucket.bytes();
            if !bucket.is_shared() {
                shelves.shelve(bucket);
            }
            shelves.surplus(self.config.max_kept_bytes)
        };
        drop(surplus);
    }

    fn shelves(&self) -> MutexGuard<'_, Shelves> {
        self.shelves.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Arena {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ArenaUsage { lent_bytes, kept_bytes } = self.usage();
        write!(f, "arena of {:?} with {lent_bytes} bytes lent and {kept_bytes} kept", self.parts)
    }
}

impl Shelves {
    fn lend(&mut self, bytes: u64) -> Option<GpuRef<u8>> {
        let bucket = self.free.get_mut(&bytes)?.pop()?;
        self.usage.kept_bytes -= bytes;
        self.usage.lent_bytes += bytes;
        Some(bucket)
    }

    fn shelve(&mut self, bucket: GpuRef<u8>) {
        self.usage.kept_bytes += bucket.bytes();
        self.free.entry(bucket.bytes()).or_default().push(bucket);
    }

    /// Takes buffers off the shelves, the largest first, until at most so many bytes are left.
    fn surplus(&mut self, keep_bytes: u64) -> Vec<GpuRef<u8>> {
        let mut surplus = Vec::new();
        while self.usage.kept_bytes > keep_bytes {
            let Some(mut shelf) = self.free.last_entry() else { break };
            match shelf.get_mut().pop() {
                Some(bucket) => {
                    self.usage.kept_bytes -= bucket.bytes();
                    surplus.push(bucket);
                }
                None => drop(shelf.remove()),
            }
        }
        surplus
    }
}

impl<T: Element> Deref for ArenaBuffer<T> {
    type Target = GpuRef<T>;

    #[expect(clippy::expect_used, reason = "only dropping takes the elements away")]
    fn deref(&self) -> &GpuRef<T> {
        self.elements.as_ref().expect("an arena buffer has its elements until it is dropped")
    }
}

impl<T: Element> fmt::Debug for ArenaBuffer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

impl<T: Element> Drop for ArenaBuffer<T> {
    fn drop(&mut self) {
        // The view goes first, so that the bucket is shared only if a handle to it is held outside.
        drop(self.elements.take());
        if let Some(bucket) = self.bucket.take() {
            self.arena.put_back(bucket);
        }
    }
}

/// The size that is allocated: four steps per power of two, so that at most a fifth is wasted.
fn bucket_bytes(bytes: usize) -> usize {
    let bytes = bytes.max(MIN_BUCKET_BYTES);
    let step = bytes.checked_next_power_of_two().map_or(1, |power| power / 8);
    bytes.checked_next_multiple_of(step).unwrap_or(bytes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn buckets_step_four_times_per_power_of_two() {
        let buckets = [0, 1, 256, 257, 320, 512, 513, 640, 1000, 1024, 1025].map(bucket_bytes);
        assert_eq!(buckets, [256, 256, 256, 320, 320, 512, 640, 640, 1024, 1024, 1280]);
    }

    proptest! {
        #[test]
        fn a_bucket_holds_its_bytes_and_wastes_at_most_a_fifth(bytes in 256usize..=usize::MAX) {
            let bucket = bucket_bytes(bytes);
            prop_assert!(bucket >= bytes);
            prop_assert!(bucket - bytes <= bucket / 5);
            prop_assert_eq!(bucket_bytes(bucket), bucket);
        }
    }
}
