//! One part of a structure for each thread.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::chunked_table::ChunkedTable;
use crate::thread_number::{recent_part, set_recent_part, thread_index};

/// Parts by thread number. A part is made when its thread first asks, and never moves.
#[derive(Debug)]
pub struct PerThread<T> {
    /// Names the structure where a thread remembers the parts it used last. No other structure has it, now or later.
    id: u64,
    parts: ChunkedTable<T>,
}

impl<T> Default for PerThread<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> PerThread<T> {
    /// No parts yet.
    pub fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Self { id: NEXT.fetch_add(1, Ordering::Relaxed), parts: ChunkedTable::new() }
    }

    /// The part of this thread, which `make` makes of the thread's number if it is not there.
    #[inline]
    pub fn own(&self, make: impl FnOnce(u32) -> T) -> &T {
        match self.recent() {
            Some(part) => part,
            None => self.find(make),
        }
    }

    /// The part of this thread, if it is one of the last few parts that the thread used: a look at thread-local memory, and no call.
    #[inline(always)]
    pub fn recent(&self) -> Option<&T> {
        let part = recent_part(self.id)?;
        // SAFETY: `find` noted the pointer in this thread for this structure: no other has its id. A part lives as long as its structure,
        // which is borrowed here, and never moves. It is still the part of this thread, because a thread forgets what it noted before
        // it gives its number back.
        Some(unsafe { part.cast::<T>().as_ref() })
    }

    #[cold]
    fn find(&self, make: impl FnOnce(u32) -> T) -> &T {
        let number = thread_index().number();
        let part = self.parts.get_or_make(number, || make(number));
        set_recent_part(self.id, part);
        part
    }

    /// All parts there are.
    pub fn iter(&self) -> impl Iterator<Item = &T> + Clone {
        self.parts.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_thread_counts_for_itself_and_all_are_seen() {
        let (threads, turns) = if cfg!(miri) { (4, 10) } else { (20, 100) };
        let parts: PerThread<AtomicU64> = PerThread::new();
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    for _ in 0..turns {
                        parts.own(|_| AtomicU64::default()).fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
        });
        assert_eq!(parts.iter().map(|part| part.load(Ordering::Relaxed)).sum::<u64>(), threads * turns);
    }

    #[test]
    fn a_thread_finds_its_part_of_each_of_many_structures() {
        // More than a thread remembers, so that they displace each other.
        let all: Vec<PerThread<AtomicU64>> = (0..40).map(|_| PerThread::new()).collect();
        for turn in 0..3 {
            for (at, parts) in all.iter().enumerate() {
                let own = parts.own(|_| AtomicU64::new(at as u64));
                assert_eq!(own.fetch_add(1, Ordering::Relaxed), at as u64 + turn);
                assert!(parts.recent().is_some_and(|recent| std::ptr::eq(recent, own)));
            }
        }
    }

    #[test]
    fn the_next_thread_with_a_number_does_not_remember_what_the_last_one_used() {
        let parts: PerThread<AtomicU64> = PerThread::new();
        for _ in 0..20 {
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    assert!(parts.recent().is_none());
                    parts.own(|_| AtomicU64::default()).fetch_add(1, Ordering::Relaxed);
                });
            });
        }
        assert_eq!(parts.iter().map(|part| part.load(Ordering::Relaxed)).sum::<u64>(), 20);
    }
}
