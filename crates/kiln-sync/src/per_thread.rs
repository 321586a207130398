//! One part of a structure for each thread.

use crate::chunked_table::ChunkedTable;
use crate::thread_number::thread_index;

/// Parts by thread number. A part is made when its thread first asks, and never moves.
#[derive(Debug)]
pub struct PerThread<T> {
    parts: ChunkedTable<T>,
}

impl<T> Default for PerThread<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> PerThread<T> {
    /// No parts yet.
    pub const fn new() -> Self {
        Self { parts: ChunkedTable::new() }
    }

    /// The part of this thread, which `make` makes of the thread's number if it is not there.
    #[inline]
    pub fn own(&self, make: impl FnOnce(u32) -> T) -> &T {
        let index = thread_index();
        match self.parts.at(index) {
            Some(part) => part,
            None => self.make(index.number(), make),
        }
    }

    #[cold]
    fn make(&self, number: u32, make: impl FnOnce(u32) -> T) -> &T {
        self.parts.get_or_make(number, || make(number))
    }

    /// All parts there are.
    pub fn iter(&self) -> impl Iterator<Item = &T> + Clone {
        self.parts.iter()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

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
}
