//! What the helper process does: locks and hazard pointers that were used in the asymmetric mode, under a filter that came later.
//!
//! The race that is looked for needs an owner whose write is still in the store buffer of its processor when another thread takes its
//! lock over. So there are many locks, all made before the filter is there; the two threads meet at one after the other; and the owner
//! first writes to far places, behind which its next write has to queue.

use std::hint::{black_box, spin_loop};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use kiln_sync::{Bias, BiasedLock, FenceMode, HazardPointer, fence_mode, is_protected};

use crate::filter::refuse_membarrier;

const LOCKS: usize = 50_000;
const OBJECTS: usize = 20_000;
/// Words that are far from each other and in no cache.
const FAR_WORDS: usize = 1 << 23;
/// Writes to them before each turn of an owner; about as many as a store buffer holds.
const FAR_WRITES: usize = 40;
/// Pauses inside of a lock, long enough for the other thread to come.
const STAY: u32 = 100;

/// A counter that notices when two threads are at it.
#[derive(Default)]
pub(crate) struct Watched {
    count: u64,
    busy: AtomicBool,
}

impl Watched {
    fn add(&mut self, violations: &AtomicU64) {
        // Whether another thread is here is asked through memory: the compiler believes that `&mut` is the only one.
        let busy = black_box(&self.busy);
        if busy.swap(true, Ordering::Relaxed) {
            violations.fetch_add(1, Ordering::Relaxed);
        }
        for _ in 0..STAY {
            spin_loop();
        }
        self.count += 1;
        busy.store(false, Ordering::Relaxed);
    }
}

/// Why a run does not count.
pub(crate) enum Unable {
    /// The system has no `membarrier`, or does not let a process filter its calls.
    System(String),
}

/// Uses locks of every kind, refuses `membarrier`, and goes on. Returns what went wrong.
pub(crate) fn run(errno: i32) -> Result<Vec<String>, Unable> {
    let mut wrong = Vec::new();
    let locks: Vec<_> = (0..LOCKS)
        .map(|at| {
            let bias = [Bias::Once, Bias::Returns(2), Bias::Always][at % 3];
            BiasedLock::with_bias(Watched::default(), bias)
        })
        .collect();
    locks.iter().for_each(|lock| lock.lock().count += 1);
    if fence_mode() != FenceMode::Asymmetric {
        return Err(Unable::System("the system has no membarrier".to_owned()));
    }
    let (violations, counted) = meet_at(&locks, errno)?;
    let expected = counted + LOCKS as u64;
    let found: u64 = locks.iter().map(|lock| lock.lock().count).sum();
    if violations > 0 || found != expected {
        wrong.push(format!("two threads were inside {violations} times; {found} of {expected} were counted"));
    }
    if fence_mode() != FenceMode::Fenced {
        wrong.push("membarrier was refused and the mode is still asymmetric".to_owned());
    }
    let dead = protect_and_remove();
    if dead > 0 {
        wrong.push(format!("{dead} objects were dropped while they were protected"));
    }
    Ok(wrong)
}

/// The owner hammers one lock after the other, and another thread takes each over. Returns overlaps and increments.
fn meet_at(locks: &[BiasedLock<Watched>], errno: i32) -> Result<(u64, u64), Unable> {
    let (violations, installed) = (AtomicU64::new(0), AtomicBool::new(false));
    // Where the visitor is, and where the owner was last.
    let (at, seen) = (AtomicUsize::new(0), AtomicUsize::new(usize::MAX));
    let total = std::thread::scope(|scope| {
        let visitor = scope.spawn(|| {
            let mut count = 0;
            while !installed.load(Ordering::Acquire) {
                spin_loop();
            }
            for (index, lock) in locks.iter().enumerate() {
                at.store(index, Ordering::Relaxed);
                while seen.load(Ordering::Relaxed) != index {
                    spin_loop();
                }
                for _ in 0..index % 97 {
                    black_box(index);
                }
                lock.lock().add(&violations);
                count += 1;
            }
            at.store(usize::MAX, Ordering::Relaxed);
            count
        });
        let mut far = FarWrites::new();
        let filtered = refuse_membarrier(errno);
        installed.store(true, Ordering::Release);
        let mut count = 0;
        // This thread made the locks and owns them.
        loop {
            let index = at.load(Ordering::Relaxed);
            let Some(lock) = locks.get(index) else { break };
            seen.store(index, Ordering::Relaxed);
            far.fill_store_buffer();
            lock.lock().add(&violations);
            count += 1;
        }
        let visited: u64 = visitor.join().map_err(|_| Unable::System("a thread panicked".to_owned()))?;
        filtered.map_err(|error| Unable::System(format!("no filter can be installed: {error}")))?;
        Ok(count + visited)
    })?;
    Ok((violations.load(Ordering::Relaxed), total))
}

/// Writes that take long.
struct FarWrites {
    words: Vec<AtomicU64>,
    state: u64,
}

impl FarWrites {
    fn new() -> Self {
        Self { words: (0..FAR_WORDS as u64).map(AtomicU64::new).collect(), state: 1 }
    }

    fn fill_store_buffer(&mut self) {
        for _ in 0..FAR_WRITES {
            self.state ^= self.state << 13;
            self.state ^= self.state >> 7;
            self.state ^= self.state << 17;
            self.words[self.state as usize % FAR_WORDS].store(self.state, Ordering::Relaxed);
        }
    }
}

/// One thread protects and reads objects that another removes and overwrites. Returns how many were read after that.
fn protect_and_remove() -> u64 {
    const ALIVE: u64 = 0x600d;
    let objects: Vec<(AtomicBool, AtomicU64)> =
        (0..OBJECTS).map(|_| (AtomicBool::new(true), AtomicU64::new(ALIVE))).collect();
    let (at, dead) = (AtomicUsize::new(0), AtomicU64::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut far = FarWrites::new();
            while let Some(object) = objects.get(at.load(Ordering::Relaxed)) {
                far.fill_store_buffer();
                let Some(hazard) = HazardPointer::protect(std::ptr::from_ref(object).addr()) else {
                    continue;
                };
                if object.0.load(Ordering::Acquire) && object.1.load(Ordering::Acquire) != ALIVE {
                    dead.fetch_add(1, Ordering::Relaxed);
                }
                hazard.clear();
            }
        });
        for (index, object) in objects.iter().enumerate() {
            at.store(index, Ordering::Relaxed);
            object.0.store(false, Ordering::Release);
            while is_protected(std::ptr::from_ref(object).addr()) {
                spin_loop();
            }
            object.1.store(0, Ordering::Release);
        }
        at.store(usize::MAX, Ordering::Relaxed);
    });
    dead.load(Ordering::Relaxed)
}
