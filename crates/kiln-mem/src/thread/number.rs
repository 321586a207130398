//! A small number for each thread.

use std::cell::Cell;
use std::sync::{Mutex, PoisonError};

use super::chunked::Spot;

thread_local! {
    /// Where this thread's entries lie in tables, which is its number said in another way.
    static SPOT: Cell<Option<Spot>> = const { Cell::new(None) };
    /// Gives the number back when the thread ends.
    static LEASE: Cell<Option<Lease>> = const { Cell::new(None) };
}

struct Lease(u32);

#[derive(Default)]
struct Numbers {
    returned: Vec<u32>,
    next: u32,
}

static NUMBERS: Mutex<Numbers> = Mutex::new(Numbers { returned: Vec::new(), next: 0 });

/// The number of this thread, as a spot in tables. No other living thread has it; once the thread ends, another may.
///
/// Numbers are handed on under a lock, so whatever a thread wrote under its number happened before whatever the next
/// one does under it.
#[inline]
pub(crate) fn thread_spot() -> Spot {
    match SPOT.get() {
        Some(spot) => spot,
        None => take_number(),
    }
}

#[cold]
fn take_number() -> Spot {
    let number = {
        let mut numbers = NUMBERS.lock().unwrap_or_else(PoisonError::into_inner);
        numbers.returned.pop().unwrap_or_else(|| {
            numbers.next += 1;
            numbers.next - 1
        })
    };
    let spot = Spot::of(number);
    SPOT.set(Some(spot));
    // A thread that is already tearing its locals down keeps its number for good: better one number less than two
    // threads with the same one.
    let _ = LEASE.try_with(|lease| lease.set(Some(Lease(number))));
    spot
}

impl Drop for Lease {
    fn drop(&mut self) {
        let _ = SPOT.try_with(|spot| spot.set(None));
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
                let spot = thread_spot();
                barrier.wait();
                assert_eq!(spot, thread_spot());
                spot.number()
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
            let number = std::thread::spawn(|| thread_spot().number()).join().unwrap();
            assert!(number < 150, "{number}");
        }
    }
}
