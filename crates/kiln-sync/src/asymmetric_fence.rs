//! An asymmetric memory fence: cheap for one thread, expensive for the others.
//!
//! Two threads each write one word and then read the word of the other. At least one of them must see what the other wrote, so each needs
//! a full fence between its write and its read, and a full fence costs some twenty cycles. Where one side does this a million times a
//! second and the other once in a while, the rare side can pay for both: [`heavy`] asks the kernel to run a full fence on every processor
//! that runs a thread of this process (`membarrier`), and [`light`] only keeps the compiler from swapping the write and the read.
//!
//! ```text
//!   frequent side:  write mine;  light();  read the other's
//!   rare side:      write mine;  heavy();  read the other's
//! ```
//!
//! # Modes
//!
//! - **Asymmetric**: `membarrier` works. `light` costs a load and a branch that is always predicted.
//! - **Fenced**: the system has no such call, or refuses it. Both sides run a full fence.
//!
//! The mode is found out at the first use. It changes once at most, from asymmetric to fenced, and never back.
//!
//! # When `membarrier` stops working
//!
//! A process may install a seccomp filter at any time, and from then on `membarrier` fails although it worked before. Then `heavy`:
//!
//! 1. registers the process again and retries, because the child of a fork may have to;
//! 2. sets the mode to fenced, so that every `light` that begins from now on is a full fence;
//! 3. lets a grace period of 20 ms pass before it returns. Every other `heavy` that meets the change waits as long.
//!
//! The grace period is for a `light` that read the old mode and has not been seen yet: its write may still be in the store buffer of its
//! processor. There are two cases. Its thread was interrupted or switched out meanwhile: the switch is a full fence. Or it kept running
//! all the time: then the write left the store buffer, which drains all the time and holds a store for as long as a cache line takes to
//! arrive, which is below a microsecond. After the period the write is visible in both cases, or the thread is past the change and has
//! fenced. FreeBSD's `smr(9)` rests its lazy mode on the same argument, with a period of two clock ticks.
//!
//! This is a statement about processors, and it is made once in the life of a process, when there is nothing better left:
//!
//! - Changing the protection of a page interrupts the other processors on most x86 machines. Newer ones and ARM invalidate remote
//!   translations without an interrupt, and nothing is fenced.
//! - Running on every processor in turn (`sched_setaffinity`) needs the right to run on all of them, never comes to an end behind a
//!   real-time thread, and is refused by many filters that refuse `membarrier`.
//! - An acknowledgement by every thread never comes from a thread that sleeps.

use std::sync::atomic::{AtomicU8, Ordering, compiler_fence, fence};
use std::time::{Duration, Instant};

/// How the two sides share the work.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FenceMode {
    /// The rare side fences for both.
    Asymmetric,
    /// Each side runs a full fence.
    Fenced,
}

const UNKNOWN: u8 = 0;
const ASYMMETRIC: u8 = 1;
/// Fenced, and a `light` of the asymmetric mode may not be seen yet.
const CHANGING: u8 = 2;
const FENCED: u8 = 3;

static MODE: AtomicU8 = AtomicU8::new(UNKNOWN);

/// How long a write may be invisible that was made before the mode changed; far above what any processor needs.
const GRACE: Duration = Duration::from_millis(20);
/// Times that a refused `membarrier` is tried; the kernel may be short of memory for a moment.
const TRIES: u32 = 3;

/// The frequent side's fence, between its write and its read.
#[inline(always)]
pub fn light() {
    if MODE.load(Ordering::Relaxed) == ASYMMETRIC {
        compiler_fence(Ordering::SeqCst);
    } else {
        light_fenced();
    }
}

/// The same, where it costs nothing; `false` where it would, and there is no fence then.
#[inline(always)]
pub(crate) fn try_light() -> bool {
    let is_free = MODE.load(Ordering::Relaxed) == ASYMMETRIC;
    compiler_fence(Ordering::SeqCst);
    is_free
}

/// The rare side's fence, between its write and its read: what other threads wrote before their last [`light`] is visible after it, and
/// what they read after their next one includes what was written before it.
#[cold]
pub fn heavy() {
    fence(Ordering::SeqCst);
    match mode() {
        ASYMMETRIC if !fence_all_processors() => leave_asymmetric(),
        CHANGING => leave_asymmetric(),
        _ => {}
    }
    fence(Ordering::SeqCst);
}

/// The mode that the process is in.
pub fn fence_mode() -> FenceMode {
    if mode() == ASYMMETRIC { FenceMode::Asymmetric } else { FenceMode::Fenced }
}

/// Whether a thread should rely on [`light`] where it has another way that costs one atomic operation.
#[inline]
pub(crate) fn is_light_cheap() -> bool {
    // An interpreter has no processors to fence. It takes the way of the light side nevertheless, to look at it.
    cfg!(miri) || mode() == ASYMMETRIC
}

#[cold]
#[inline(never)]
fn light_fenced() {
    mode();
    fence(Ordering::SeqCst);
}

/// The mode, found out at the first call. A `light` that ran before has fenced in full, which is right in every mode.
#[inline]
fn mode() -> u8 {
    match MODE.load(Ordering::Acquire) {
        UNKNOWN => find_mode(),
        known => known,
    }
}

#[cold]
fn find_mode() -> u8 {
    let found = if !cfg!(miri) && membarrier::register() && membarrier::run() { ASYMMETRIC } else { FENCED };
    MODE.compare_exchange(UNKNOWN, found, Ordering::SeqCst, Ordering::SeqCst)
        .map_or_else(|known| known, |_| found)
}

/// Whether every thread of the process has passed a full fence.
fn fence_all_processors() -> bool {
    (0..TRIES).any(|_| membarrier::run() || membarrier::register() && membarrier::run())
}

/// Goes over to fences on both sides, and waits until every write of the asymmetric mode is visible. Each caller waits by itself, so
/// that none depends on another thread.
#[cold]
fn leave_asymmetric() {
    // Never back from `FENCED`: the first thread there has waited long enough.
    let _ = MODE.compare_exchange(ASYMMETRIC, CHANGING, Ordering::SeqCst, Ordering::SeqCst);
    fence(Ordering::SeqCst);
    let begun = Instant::now();
    while begun.elapsed() < GRACE {
        // Not a sleep: the filter that refused one call may refuse that one, too.
        std::thread::yield_now();
    }
    MODE.store(FENCED, Ordering::SeqCst);
}

#[cfg(any(target_os = "linux", target_os = "android"))]
mod membarrier {
    use rustix::thread::{MembarrierCommand, membarrier};

    pub(super) fn register() -> bool {
        membarrier(MembarrierCommand::RegisterPrivateExpedited).is_ok()
    }

    pub(super) fn run() -> bool {
        membarrier(MembarrierCommand::PrivateExpedited).is_ok()
    }
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
mod membarrier {
    pub(super) fn register() -> bool {
        false
    }

    pub(super) fn run() -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;

    /// One side announces itself with a light fence, the other with a heavy one: never do both miss the other.
    #[test]
    fn two_sides_never_miss_each_other() {
        let rounds = if cfg!(miri) { 20 } else { 5_000 };
        for _ in 0..rounds {
            let (mine, theirs) = (AtomicBool::new(false), AtomicBool::new(false));
            let (frequent, rare) = std::thread::scope(|scope| {
                let rare = scope.spawn(|| {
                    theirs.store(true, Ordering::Relaxed);
                    heavy();
                    mine.load(Ordering::Relaxed)
                });
                mine.store(true, Ordering::Relaxed);
                light();
                let seen = theirs.load(Ordering::Relaxed);
                (seen, rare.join().unwrap())
            });
            assert!(frequent || rare);
        }
    }
}
