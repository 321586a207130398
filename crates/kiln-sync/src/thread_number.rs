//! A small number for each thread.

use std::cell::Cell;
use std::ptr::NonNull;
use std::sync::{Mutex, PoisonError};

use crate::chunked_table::ChunkIndex;

thread_local! {
    /// This thread's number and 1; 0 while it has none. Without a destructor, so that a look is a load.
    static NUMBER: Cell<u32> = const { Cell::new(0) };
    /// Where this thread's entries lie in tables.
    static INDEX: Cell<Option<ChunkIndex>> = const { Cell::new(None) };
    /// Parts of structures that this thread used last, by the id of the structure.
    static RECENT: [Cell<RecentPart>; RECENT_PARTS] = const { [const { Cell::new(RecentPart::NONE) }; RECENT_PARTS] };
    /// Gives the number back when the thread ends.
    static LEASE: Cell<Option<Lease>> = const { Cell::new(None) };
}

/// How many parts a thread remembers.
const RECENT_PARTS: usize = 8;

/// A part of a structure.
#[derive(Clone, Copy)]
struct RecentPart {
    /// The structure; no structure has 0.
    id: u64,
    part: NonNull<()>,
}

impl RecentPart {
    const NONE: Self = Self { id: 0, part: NonNull::dangling() };
}

struct Lease(u32);

#[derive(Default)]
struct Numbers {
    returned: Vec<u32>,
    next: u32,
}

static NUMBERS: Mutex<Numbers> = Mutex::new(Numbers { returned: Vec::new(), next: 0 });

/// The number of this thread, as an index of tables. No other living thread has it; once the thread ends, another may.
///
/// A number passes from one thread to the next under a lock, so whatever a thread did under its number happens before whatever the next
/// one does under it.
#[inline]
pub fn thread_index() -> ChunkIndex {
    match INDEX.get() {
        Some(index) => index,
        None => take_number(),
    }
}

/// The same number as a word that is never 0.
#[inline(always)]
#[cfg_attr(any(kiln_loom, kiln_shuttle), expect(dead_code, reason = "a model numbers its threads itself"))]
pub(crate) fn this_thread() -> u32 {
    match NUMBER.get() {
        0 => take_number().number() + 1,
        number => number,
    }
}

/// The same; 0 for a thread that has no number yet.
#[inline(always)]
#[cfg_attr(any(kiln_loom, kiln_shuttle), expect(dead_code, reason = "a model numbers its threads itself"))]
pub(crate) fn known_thread() -> u32 {
    NUMBER.get()
}

#[cold]
#[inline(never)]
fn take_number() -> ChunkIndex {
    let number = {
        let mut numbers = NUMBERS.lock().unwrap_or_else(PoisonError::into_inner);
        numbers.returned.pop().unwrap_or_else(|| {
            numbers.next += 1;
            numbers.next - 1
        })
    };
    let index = ChunkIndex::of(number);
    NUMBER.set(number + 1);
    INDEX.set(Some(index));
    // A thread that is already dropping its locals keeps its number for good: better one number less than two threads with the same one.
    let _ = LEASE.try_with(|lease| lease.set(Some(Lease(number))));
    index
}

/// The part of a structure that this thread noted with [`set_recent_part`], if it has noted no other in its place. All are forgotten before the
/// thread gives its number back.
#[inline(always)]
pub(crate) fn recent_part(id: u64) -> Option<NonNull<()>> {
    let noted = RECENT.with(|recent| recent[id as usize % RECENT_PARTS].get());
    if noted.id == id { Some(noted.part) } else { None }
}

/// Notes this thread's part of a structure.
pub(crate) fn set_recent_part<T>(id: u64, part: &T) {
    RECENT.with(|recent| {
        recent[id as usize % RECENT_PARTS].set(RecentPart { id, part: NonNull::from(part).cast() })
    });
}

impl Drop for Lease {
    fn drop(&mut self) {
        RECENT.with(|recent| recent.iter().for_each(|part| part.set(RecentPart::NONE)));
        NUMBER.set(0);
        INDEX.set(None);
        NUMBERS.lock().unwrap_or_else(PoisonError::into_inner).returned.push(self.0);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::sync::Barrier;

    use super::*;

    #[test]
    fn living_threads_have_different_numbers() {
        let barrier = Barrier::new(8);
        let numbers: HashSet<u32> = std::thread::scope(|scope| {
            let run = || {
                let index = thread_index();
                barrier.wait();
                assert_eq!((index, index.number() + 1), (thread_index(), this_thread()));
                index.number()
            };
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(run)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert_eq!(numbers.len(), 8);
    }

    #[test]
    fn numbers_stay_small_when_threads_come_and_go() {
        let threads = if cfg!(miri) { 20 } else { 200 };
        for _ in 0..threads {
            let number = std::thread::spawn(|| thread_index().number()).join().unwrap();
            assert!(number < 150, "{number}");
        }
    }
}
