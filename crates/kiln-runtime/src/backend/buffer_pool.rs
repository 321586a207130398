//! A pool of device buffers: a buffer that is given back serves a later request of about its size.
//!
//! Allocating costs tens of microseconds and more, so a buffer that is given back goes to a free list and serves the next
//! request of about its size. The runtime remembers the last uses of a free buffer as of any other: its next user, on any
//! stream, is ordered after them, and giving back never waits. The free lists hold a limited number of bytes; what exceeds
//! the limit, and what is trimmed, is freed after its last use.
//!
//! A free buffer is lent only if its contents can be reached. When another context has taken the place of a lost one, the
//! buffers that were lost with it leave the free lists, and so does a buffer that is given back after its loss.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::backend_parts::BackendParts;
use crate::buffer::{Element, GpuRef};
use crate::error::{Error, Misuse, Result, Stale};
use crate::ids::Generation;

/// The smallest buffer that is allocated.
const MIN_BUFFER_BYTES: usize = 256;

/// How much an arena may keep.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ArenaConfig {
    /// Bytes of free buffers at most; buffers in use do not count.
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
    /// Bytes of buffers that are in use.
    pub lent_bytes: u64,
    /// Bytes of free buffers.
    pub kept_bytes: u64,
}

/// Reusable buffers of one backend.
pub struct Arena {
    parts: BackendParts,
    config: ArenaConfig,
    lists: Mutex<FreeLists>,
}

#[derive(Default)]
struct FreeLists {
    by_size: BTreeMap<u64, Vec<GpuRef<u8>>>,
    usage: ArenaUsage,
    /// The generation of the device up to which lost buffers have been removed.
    checked: Generation,
}

/// A buffer of an arena. It dereferences to a [`GpuRef`]; dropping it gives it back.
///
/// A clone of the handle that outlives this value keeps the memory: the buffer then does not return to the arena.
pub struct ArenaBuffer<T: Element> {
    arena: Arc<Arena>,
    /// The elements asked for; none only while this value is dropped.
    elements: Option<GpuRef<T>>,
    /// The whole buffer they lie in; likewise.
    whole: Option<GpuRef<u8>>,
}

impl Arena {
    pub(super) fn new(parts: BackendParts, config: ArenaConfig) -> Arc<Self> {
        Arc::new(Self { parts, config, lists: Mutex::default() })
    }

    /// A buffer for `len` elements, reused or new. Its contents are not defined.
    ///
    /// # Errors
    /// Out of memory, also after every free buffer was released; more bytes than a device can hold; a device that is not
    /// ready.
    pub fn take<T: Element>(self: &Arc<Self>, len: usize) -> Result<ArenaBuffer<T>> {
        let too_large = || Error::new(Misuse::TooLarge { len, element_bytes: size_of::<T>() });
        let bytes = len.checked_mul(size_of::<T>()).ok_or_else(too_large)?;
        let buffer_bytes = buffer_bytes(bytes);
        let (whole, is_reused) = match self.reuse(buffer_bytes as u64) {
            Some(buffer) => (buffer, true),
            None => (self.allocate(buffer_bytes)?, false),
        };
        let mut buffer = ArenaBuffer { arena: Arc::clone(self), elements: None, whole: Some(whole.clone()) };
        if is_reused {
            whole.block().hand_out_again()?;
        }
        buffer.elements = Some(whole.view(..bytes)?.cast()?);
        Ok(buffer)
    }

    /// What it holds right now. Lost buffers do not count.
    pub fn usage(&self) -> ArenaUsage {
        self.drop_lost();
        self.lists().usage
    }

    /// Frees unused buffers, the largest first, until at most so many bytes are kept.
    pub fn trim(&self, keep_bytes: u64) {
        self.drop_lost();
        let surplus = self.lists().surplus(keep_bytes);
        // Freeing calls the driver, so it happens here, without the lock.
        drop(surplus);
    }

    /// A free buffer of that size whose memory can be reached.
    fn reuse(&self, bytes: u64) -> Option<GpuRef<u8>> {
        self.drop_lost();
        loop {
            let buffer = self.lists().pop(bytes)?;
            match buffer.access() {
                Ok(_) => {
                    self.lists().usage.lent_bytes += bytes;
                    return Some(buffer);
                }
                // Whether it is lost is not known yet. An allocation says that the device is not ready.
                Err(Stale::Rebuilding) => {
                    self.lists().push(buffer);
                    return None;
                }
                Err(_) => drop(buffer),
            }
        }
    }

    fn allocate(&self, bytes: usize) -> Result<GpuRef<u8>> {
        let runtime = self.parts.runtime();
        let allocate = || runtime.allocate_on(self.parts.stream(), bytes);
        let buffer = match allocate() {
            Err(error) if error.is_oom() && self.usage().kept_bytes > 0 => {
                self.trim(0);
                // What was just freed can be allocated again when its last use is done.
                runtime.synchronize()?;
                runtime.reap_pending()?;
                allocate()?
            }
            answer => answer?,
        };
        self.lists().usage.lent_bytes += buffer.bytes();
        Ok(buffer)
    }

    fn put_back(&self, buffer: GpuRef<u8>) {
        let reachable = matches!(buffer.access(), Ok(_) | Err(Stale::Rebuilding));
        // A view cannot overwrite the whole buffer, so one whose contents are in doubt would stay so for its next user.
        let reusable = reachable && buffer.is_trusted() && !buffer.is_shared();
        if reusable {
            buffer.block().set_aside();
        }
        let surplus = {
            let mut lists = self.lists();
            lists.usage.lent_bytes -= buffer.bytes();
            if reusable {
                lists.push(buffer);
            }
            lists.surplus(self.config.max_kept_bytes)
        };
        drop(surplus);
    }

    /// Removes the free buffers that were lost with a context, once for each generation of the device.
    fn drop_lost(&self) {
        let lost = self.lists().take_lost(self.parts.runtime().generation());
        drop(lost);
    }

    fn lists(&self) -> MutexGuard<'_, FreeLists> {
        self.lists.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Arena {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ArenaUsage { lent_bytes, kept_bytes } = self.usage();
        write!(f, "arena of {:?} with {lent_bytes} bytes lent and {kept_bytes} kept", self.parts)
    }
}

impl FreeLists {
    fn pop(&mut self, bytes: u64) -> Option<GpuRef<u8>> {
        let buffer = self.by_size.get_mut(&bytes)?.pop()?;
        self.usage.kept_bytes -= bytes;
        Some(buffer)
    }

    fn push(&mut self, buffer: GpuRef<u8>) {
        self.usage.kept_bytes += buffer.bytes();
        self.by_size.entry(buffer.bytes()).or_default().push(buffer);
    }

    /// Takes buffers out, the largest first, until at most so many bytes are left.
    fn surplus(&mut self, keep_bytes: u64) -> Vec<GpuRef<u8>> {
        let mut surplus = Vec::new();
        while self.usage.kept_bytes > keep_bytes {
            let Some(mut list) = self.by_size.last_entry() else { break };
            match list.get_mut().pop() {
                Some(buffer) => {
                    self.usage.kept_bytes -= buffer.bytes();
                    surplus.push(buffer);
                }
                None => drop(list.remove()),
            }
        }
        surplus
    }

    /// Takes out what was lost before that generation; nothing if it was done already.
    fn take_lost(&mut self, generation: Generation) -> Vec<GpuRef<u8>> {
        let mut lost = Vec::new();
        if self.checked == generation {
            return lost;
        }
        let mut decided = true;
        for list in self.by_size.values_mut() {
            lost.extend(list.extract_if(.., |buffer| match buffer.access() {
                Ok(_) => false,
                Err(Stale::Rebuilding) => {
                    decided = false;
                    false
                }
                Err(_) => true,
            }));
        }
        self.usage.kept_bytes -= lost.iter().map(GpuRef::bytes).sum::<u64>();
        if decided {
            self.checked = generation;
        }
        lost
    }
}

impl<T: Element> Deref for ArenaBuffer<T> {
    type Target = GpuRef<T>;

    #[expect(clippy::expect_used, reason = "only `drop` takes the elements")]
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
        // The view is dropped first, so that the buffer is shared only if a handle outside of the arena remains.
        drop(self.elements.take());
        if let Some(whole) = self.whole.take() {
            self.arena.put_back(whole);
        }
    }
}

/// The size that is allocated: four steps per power of two, so that at most a fifth is wasted.
fn buffer_bytes(bytes: usize) -> usize {
    let bytes = bytes.max(MIN_BUFFER_BYTES);
    let step = bytes.checked_next_power_of_two().map_or(1, |power| power / 8);
    bytes.checked_next_multiple_of(step).unwrap_or(bytes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn sizes_step_four_times_per_power_of_two() {
        let sizes = [0, 1, 256, 257, 320, 512, 513, 640, 1000, 1024, 1025].map(buffer_bytes);
        assert_eq!(sizes, [256, 256, 256, 320, 320, 512, 640, 640, 1024, 1024, 1280]);
    }

    proptest! {
        #[test]
        fn a_buffer_holds_its_bytes_and_wastes_at_most_a_fifth(bytes in 256usize..=usize::MAX) {
            let size = buffer_bytes(bytes);
            prop_assert!(size >= bytes);
            prop_assert!(size - bytes <= size / 5);
            prop_assert_eq!(buffer_bytes(size), size);
        }
    }
}
