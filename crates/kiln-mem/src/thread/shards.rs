//! One part of a structure for each thread.

use super::chunked::Chunked;
use super::number::thread_spot;

/// Parts by thread number. A part is made when its thread first asks, and never moves.
#[derive(Debug)]
pub(crate) struct Shards<T> {
    parts: Chunked<T>,
}

impl<T> Shards<T> {
    pub(crate) const fn new() -> Self {
        Self { parts: Chunked::new() }
    }

    /// The part of this thread; `make` gets its number.
    #[inline]
    pub(crate) fn own(&self, make: impl FnOnce(u32) -> T) -> &T {
        let spot = thread_spot();
        match self.parts.at(spot) {
            Some(part) => part,
            None => self.make(spot.number(), make),
        }
    }

    #[cold]
    fn make(&self, number: u32, make: impl FnOnce(u32) -> T) -> &T {
        self.parts.get_or_make(number, || make(number))
    }

    /// All parts there are.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> + Clone {
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
        let shards: Shards<AtomicU64> = Shards::new();
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    for _ in 0..turns {
                        shards.own(|_| AtomicU64::default()).fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
        });
        assert_eq!(shards.iter().map(|part| part.load(Ordering::Relaxed)).sum::<u64>(), threads * turns);
    }
}
