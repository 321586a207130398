//! What is tried before memory is said to be out, cheapest first.

use std::cell::RefCell;
use std::fmt;
use std::ops::Add;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// One thing that can be done about a lack of memory. The order is the order in which they are tried.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Rung {
    /// Empties the caches of all threads.
    FrontCaches,
    /// Asks how far streams are and takes what is done.
    Completed,
    /// Makes a stream wait, on the device, for another one whose memory it gets.
    Ordered,
    /// Gives pages that hold nothing back to the device, or takes them for something else.
    IdlePages,
    /// Asks the program to give something up, by priority.
    Callbacks,
    /// Waits, on the host and for a bounded time, for work that is known to free memory.
    Wait,
}

impl Rung {
    /// All of them, in order.
    pub const ALL: [Self; 6] =
        [Self::FrontCaches, Self::Completed, Self::Ordered, Self::IdlePages, Self::Callbacks, Self::Wait];
}

impl fmt::Display for Rung {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::FrontCaches => "front caches",
            Self::Completed => "completed frees",
            Self::Ordered => "ordered frees",
            Self::IdlePages => "idle pages",
            Self::Callbacks => "callbacks",
            Self::Wait => "bounded wait",
        })
    }
}

/// What a step brought.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Relief {
    /// Bytes that can be handed out now and could not before.
    pub freed_bytes: u64,
    /// Bytes that went back to the device.
    pub released_bytes: u64,
}

impl Relief {
    /// Bytes that can be handed out now.
    pub fn freed(bytes: u64) -> Self {
        Self { freed_bytes: bytes, released_bytes: 0 }
    }

    /// Bytes that went back to the device.
    pub fn released(bytes: u64) -> Self {
        Self { freed_bytes: 0, released_bytes: bytes }
    }

    /// Whether it brought nothing.
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }
}

impl Add for Relief {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            // A callback may say that it freed any number.
            freed_bytes: self.freed_bytes.saturating_add(other.freed_bytes),
            released_bytes: self.released_bytes.saturating_add(other.released_bytes),
        }
    }
}

/// A step that was taken and what it brought.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Step {
    /// Which one.
    pub rung: Rung,
    /// What came of it.
    pub relief: Relief,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.relief {
            Relief { freed_bytes: 0, released_bytes: 0 } => write!(f, "{}: nothing", self.rung),
            Relief { freed_bytes, released_bytes: 0 } => write!(f, "{}: {freed_bytes} bytes", self.rung),
            Relief { freed_bytes: 0, released_bytes } => {
                write!(f, "{}: {released_bytes} bytes back to the device", self.rung)
            }
            Relief { freed_bytes, released_bytes } => {
                write!(f, "{}: {freed_bytes} bytes, {released_bytes} back to the device", self.rung)
            }
        }
    }
}

/// Asked to give up memory: gets the bytes that are missing, says how many it freed.
pub type Callback = dyn Fn(u64) -> u64 + Send + Sync;

/// What a program lets be done under pressure: callbacks that give memory up, and how long to wait for work.
///
/// Clones share the callbacks.
///
/// ```
/// use kiln_mem::Pressure;
///
/// let pressure = Pressure::default();
/// let cache = pressure.on_pressure(10, |_missing| 4096);
/// let spill = pressure.on_pressure(1, |missing| missing);
/// assert_eq!(pressure.call_back(10_000), 4096 + (10_000 - 4096), "the highest priority is asked first");
/// drop(spill);
/// assert_eq!(pressure.call_back(10_000), 4096);
/// # drop(cache);
/// ```
#[derive(Clone)]
pub struct Pressure {
    callbacks: Arc<Mutex<Vec<Entry>>>,
    /// The longest wait for work that is known to free memory; zero does not wait.
    pub wait: Duration,
    /// The steps that may be taken; all of them, unless a program cannot afford one: a service that must not stall
    /// leaves [`Rung::Wait`] out.
    pub rungs: &'static [Rung],
}

impl Default for Pressure {
    fn default() -> Self {
        Self { callbacks: Arc::default(), wait: Duration::ZERO, rungs: &Rung::ALL }
    }
}

#[derive(Clone)]
struct Entry {
    priority: i32,
    serial: u64,
    call: Arc<Callback>,
}

/// Keeps a callback registered until it is dropped. A thread that is in it by then, or about to be, is not waited for.
#[must_use = "the callback is taken out again when this is dropped"]
pub struct Registration {
    callbacks: Arc<Mutex<Vec<Entry>>>,
    serial: u64,
}

impl Pressure {
    /// Waits at most so long for work, and has no callbacks yet.
    pub fn waiting(wait: Duration) -> Self {
        Self { wait, ..Self::default() }
    }

    /// The same, taking only these steps.
    #[must_use]
    pub fn only(self, rungs: &'static [Rung]) -> Self {
        Self { rungs, ..self }
    }

    /// Asks this callback when memory is short. Those with a higher priority are asked first, until enough is free. It
    /// is called while no lock is held. It may free blocks, and allocate some; if what it asks for is not there either,
    /// others are asked to give it up, but not itself.
    pub fn on_pressure(
        &self,
        priority: i32,
        call: impl Fn(u64) -> u64 + Send + Sync + 'static,
    ) -> Registration {
        let mut callbacks = self.callbacks.lock().unwrap_or_else(PoisonError::into_inner);
        let serial = callbacks.iter().map(|entry| entry.serial + 1).max().unwrap_or(0);
        callbacks.push(Entry { priority, serial, call: Arc::new(call) });
        callbacks.sort_by_key(|entry| (std::cmp::Reverse(entry.priority), entry.serial));
        Registration { callbacks: self.callbacks.clone(), serial }
    }

    /// Asks the callbacks until they freed so many bytes; returns what they say they freed.
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
    fn enter(call: &Arc<Callback>) -> Option<Self> {
        let address = Arc::as_ptr(call).cast::<()>().addr();
        let enter = |running: &RefCell<Vec<usize>>| {
            let mut running = running.borrow_mut();
            let is_new = !running.contains(&address);
            if is_new {
                running.push(address);
            }
            is_new
        };
        // A thread that is tearing its locals down keeps no account of where it is.
        RUNNING.try_with(enter).unwrap_or(true).then_some(Self)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = RUNNING.try_with(|running| running.borrow_mut().pop());
    }
}

impl fmt::Debug for Pressure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let callbacks = self.callbacks.lock().unwrap_or_else(PoisonError::into_inner).len();
        f.debug_struct("Pressure").field("callbacks", &callbacks).field("wait", &self.wait).finish()
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        let mut callbacks = self.callbacks.lock().unwrap_or_else(PoisonError::into_inner);
        callbacks.retain(|entry| entry.serial != self.serial);
    }
}
