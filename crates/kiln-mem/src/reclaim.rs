//! What is done to reclaim memory before a request is refused, cheapest first.

use std::cell::RefCell;
use std::fmt;
use std::ops::Add;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// A step that may reclaim memory. The steps are taken in this order.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum ReclaimStep {
    /// Empties the caches of all threads.
    ThreadCaches,
    /// Asks how far streams are and takes what is done.
    Completed,
    /// Makes a stream wait, on the device, for another stream whose memory it gets.
    Ordered,
    /// Gives pages that hold no block back to the device, or uses them for another block.
    IdlePages,
    /// Calls the callbacks of the program, by priority.
    Callbacks,
    /// Waits, on the host and for a bounded time, for work that is known to free memory.
    Wait,
}

impl ReclaimStep {
    /// All of them, in order.
    pub const ALL: [Self; 6] =
        [Self::ThreadCaches, Self::Completed, Self::Ordered, Self::IdlePages, Self::Callbacks, Self::Wait];
}

impl fmt::Display for ReclaimStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ThreadCaches => "thread caches",
            Self::Completed => "completed frees",
            Self::Ordered => "ordered frees",
            Self::IdlePages => "idle pages",
            Self::Callbacks => "callbacks",
            Self::Wait => "bounded wait",
        })
    }
}

/// What a step reclaimed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Reclaimed {
    /// Bytes that can be handed out now and could not before.
    pub freed_bytes: u64,
    /// Bytes that went back to the device.
    pub released_bytes: u64,
}

impl Reclaimed {
    /// Bytes that can be handed out now.
    pub fn freed(bytes: u64) -> Self {
        Self { freed_bytes: bytes, released_bytes: 0 }
    }

    /// Bytes that went back to the device.
    pub fn released(bytes: u64) -> Self {
        Self { freed_bytes: 0, released_bytes: bytes }
    }

    /// Whether it reclaimed nothing.
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }
}

impl Add for Reclaimed {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            // A callback may say that it freed any number.
            freed_bytes: self.freed_bytes.saturating_add(other.freed_bytes),
            released_bytes: self.released_bytes.saturating_add(other.released_bytes),
        }
    }
}

/// A step that was taken, and what it reclaimed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReclaimAttempt {
    /// Which one.
    pub step: ReclaimStep,
    /// What came of it.
    pub reclaimed: Reclaimed,
}

impl fmt::Display for ReclaimAttempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.reclaimed {
            Reclaimed { freed_bytes: 0, released_bytes: 0 } => write!(f, "{}: nothing", self.step),
            Reclaimed { freed_bytes, released_bytes: 0 } => write!(f, "{}: {freed_bytes} bytes", self.step),
            Reclaimed { freed_bytes: 0, released_bytes } => {
                write!(f, "{}: {released_bytes} bytes back to the device", self.step)
            }
            Reclaimed { freed_bytes, released_bytes } => {
                write!(f, "{}: {freed_bytes} bytes, {released_bytes} back to the device", self.step)
            }
        }
    }
}

/// Called when memory is short: gets the bytes that are missing, and returns how many it freed.
pub type PressureCallback = dyn Fn(u64) -> u64 + Send + Sync;

/// What may be done when memory is short: which steps, which callbacks, and how long to wait for work.
///
/// Clones share the callbacks.
///
/// ```
/// use kiln_mem::PressurePolicy;
///
/// let pressure = PressurePolicy::default();
/// let cache = pressure.on_pressure(10, |_missing| 4096);
/// let spill = pressure.on_pressure(1, |missing| missing);
/// assert_eq!(pressure.call_back(10_000), 4096 + (10_000 - 4096), "the highest priority is asked first");
/// drop(spill);
/// assert_eq!(pressure.call_back(10_000), 4096);
/// # drop(cache);
/// ```
#[derive(Clone)]
pub struct PressurePolicy {
    callbacks: Arc<Mutex<Vec<RegisteredCallback>>>,
    /// The longest wait for work that is known to free memory; zero for no wait.
    pub wait: Duration,
    /// The steps that may be taken; all by default. A service that must not stall
    /// leaves [`ReclaimStep::Wait`] out.
    pub steps: &'static [ReclaimStep],
}

impl Default for PressurePolicy {
    fn default() -> Self {
        Self { callbacks: Arc::default(), wait: Duration::ZERO, steps: &ReclaimStep::ALL }
    }
}

#[derive(Clone)]
struct RegisteredCallback {
    priority: i32,
    serial: u64,
    call: Arc<PressureCallback>,
}

/// Keeps a callback registered until it is dropped. Dropping does not wait for a thread that is in the callback.
#[must_use = "the callback is taken out again when this is dropped"]
pub struct CallbackRegistration {
    callbacks: Arc<Mutex<Vec<RegisteredCallback>>>,
    serial: u64,
}

impl PressurePolicy {
    /// Waits at most so long for work, and has no callbacks yet.
    pub fn waiting(wait: Duration) -> Self {
        Self { wait, ..Self::default() }
    }

    /// The same, taking only these steps.
    #[must_use]
    pub fn only(self, steps: &'static [ReclaimStep]) -> Self {
        Self { steps, ..self }
    }

    /// Calls this callback when memory is short. Callbacks with a higher priority are called first, until enough is free. No lock is held
    /// meanwhile. A callback may free blocks and allocate some; if memory is short for these too, other callbacks are called, but not itself.
    pub fn on_pressure(
        &self,
        priority: i32,
        call: impl Fn(u64) -> u64 + Send + Sync + 'static,
    ) -> CallbackRegistration {
        let mut callbacks = self.callbacks.lock().unwrap_or_else(PoisonError::into_inner);
        let serial = callbacks.iter().map(|entry| entry.serial + 1).max().unwrap_or(0);
        callbacks.push(RegisteredCallback { priority, serial, call: Arc::new(call) });
        callbacks.sort_by_key(|entry| (std::cmp::Reverse(entry.priority), entry.serial));
        CallbackRegistration { callbacks: self.callbacks.clone(), serial }
    }

    /// Calls the callbacks until they have freed `missing_bytes`; returns what they say they freed.
    pub fn call_back(&self, missing_bytes: u64) -> u64 {
        let callbacks = self.callbacks.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut freed: u64 = 0;
        for entry in callbacks {
            if freed >= missing_bytes {
                break;
            }
            let Some(_running) = Running::enter(&entry.call) else { continue };
            freed = freed.saturating_add((entry.call)(missing_bytes - freed));
        }
        freed
    }
}

thread_local! {
    /// The callbacks that this thread is in, by their addresses, the outermost first.
    static RUNNING: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
}

/// A callback that this thread is in until this is dropped, also by a panic.
struct Running;

impl Running {
    /// None if the thread is in it already: it would call itself without end.
    fn enter(call: &Arc<PressureCallback>) -> Option<Self> {
        let address = Arc::as_ptr(call).cast::<()>().addr();
        let enter = |running: &RefCell<Vec<usize>>| {
            let mut running = running.borrow_mut();
            let is_new = !running.contains(&address);
            if is_new {
                running.push(address);
            }
            is_new
        };
        // A thread that is dropping its locals does not note where it is.
        RUNNING.try_with(enter).unwrap_or(true).then_some(Self)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = RUNNING.try_with(|running| running.borrow_mut().pop());
    }
}

impl fmt::Debug for PressurePolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let callbacks = self.callbacks.lock().unwrap_or_else(PoisonError::into_inner).len();
        f.debug_struct("PressurePolicy").field("callbacks", &callbacks).field("wait", &self.wait).finish()
    }
}

impl Drop for CallbackRegistration {
    fn drop(&mut self) {
        let mut callbacks = self.callbacks.lock().unwrap_or_else(PoisonError::into_inner);
        callbacks.retain(|entry| entry.serial != self.serial);
    }
}
