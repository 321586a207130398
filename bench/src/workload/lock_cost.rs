//! LK: what a lock costs that only one thread takes.
//!
//! One operation takes five locks one after the other and releases them, as a launch with four buffers does: its stream and four blocks.
//! The subjects are a mutex of the standard library, a biased lock that this thread owns, and a biased lock that another thread took
//! over, which is what a lock without an owner costs.

use std::hint::black_box;
use std::sync::{Mutex, PoisonError};

use kiln_sync::{Bias, BiasedLock, FenceMode, fence_mode};

use crate::Failure;
use crate::result_table::Table;
use crate::timing::{in_turn, subject};

const BATCH: usize = 10_000;
const BATCHES: usize = 100;
/// Locks of one operation.
const LOCKS: usize = 5;

/// LK.
pub(crate) fn uncontended(table: &mut Table, repeats: usize) -> Result<(), Failure> {
    let mutexes: [Mutex<u64>; LOCKS] = std::array::from_fn(|_| Mutex::new(0));
    let owned: [BiasedLock<u64>; LOCKS] = std::array::from_fn(|_| BiasedLock::with_bias(0, Bias::Always));
    let taken_over: [BiasedLock<u64>; LOCKS] = std::array::from_fn(|_| BiasedLock::new(0));
    let take_over = || taken_over.iter().for_each(|lock| *lock.lock() += 1);
    std::thread::scope(|scope| scope.spawn(take_over).join()).map_err(|_| "the other thread panicked")?;

    let by_mutex = || {
        for mutex in &mutexes {
            *black_box(mutex).lock().unwrap_or_else(PoisonError::into_inner) += 1;
        }
        Ok(())
    };
    let by_lock = |locks: &[BiasedLock<u64>; LOCKS]| {
        for lock in locks {
            *black_box(lock).lock() += 1;
        }
        Ok(())
    };
    let subjects = [
        subject(BATCH, by_mutex, || Ok(())),
        subject(BATCH, || by_lock(&owned), || Ok(())),
        subject(BATCH, || by_lock(&taken_over), || Ok(())),
    ];
    let [mutex, biased, unowned] = in_turn(BATCHES * repeats, subjects)?;
    if fence_mode() == FenceMode::Fenced {
        table.note("lk: the system has no membarrier, so that no lock has an owner");
    }
    table.add("lk", "five std mutexes", mutex);
    table.add("lk", "five biased locks of this thread", biased);
    table.add("lk", "five biased locks without an owner", unowned);
    Ok(())
}
