//! What the times in the records of a stream are counted in.

/// Turns ticks into the time of a recording. The thread that writes the file asks, never a thread that submits.
pub trait TickScale: Send + Sync {
    /// Records are about to be read: a clock that is set by another one is set now.
    fn set(&self) {}

    /// The time of the recording in nanoseconds.
    fn time_ns(&self, ticks: u64) -> u64;
}

/// Ticks that are nanoseconds of the recording.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct NanosecondTicks;

impl TickScale for NanosecondTicks {
    fn time_ns(&self, ticks: u64) -> u64 {
        ticks
    }
}
