//! Clocks: real and virtual time.
//!
//! Deadlines and back-off ask the device's clock and not the system's, so that on a simulated device a minute of
//! waiting takes no time and gives the same answer on every machine.

use std::time::{Duration, Instant};

/// Where a device's time comes from.
pub trait Clock: Send + Sync {
    /// Time since the clock started.
    fn now(&self) -> Duration;

    /// Lets that much time pass.
    fn sleep(&self, duration: Duration);

    /// Which clock it is: times of two clocks can be compared if this is the same for both, but for the moment at which each started. 0 is the time on the wall; each other clock
    /// has a number that no other one in this process has.
    fn number(&self) -> u64 {
        0
    }
}

/// The time on the wall.
#[derive(Debug)]
pub struct WallClock {
    start: Instant,
}

impl WallClock {
    /// A clock that starts now.
    pub fn new() -> Self {
        Self { start: Instant::now() }
    }
}

impl Default for WallClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for WallClock {
    fn now(&self) -> Duration {
        self.start.elapsed()
    }

    fn sleep(&self, duration: Duration) {
        std::thread::sleep(duration);
    }
}

/// How long a wait may take.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Timeout {
    /// Only look.
    Poll,
    /// At most this long.
    After(Duration),
    /// As long as it takes. A lost device still ends the wait, with the fault.
    Never,
}

/// How a wait ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub enum Waited {
    /// What was waited for is done.
    Done,
    /// It is not done yet.
    TimedOut,
}

impl Waited {
    /// Whether what was waited for is done.
    pub fn is_done(self) -> bool {
        self == Self::Done
    }
}
