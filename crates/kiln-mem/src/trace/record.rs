//! A trace record: one allocation or free, in 40 bytes.

use std::fmt;
use std::time::Duration;

use kiln_driver::DeviceAddress;

use crate::last_use::StreamKey;
use crate::tag::AllocTag;

/// What happened.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum TraceAction {
    /// A block was handed out.
    Allocate,
    /// A block was taken back.
    Free,
    /// A request was not met.
    Fail,
}

impl fmt::Display for TraceAction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Allocate => "allocate",
            Self::Free => "free",
            Self::Fail => "allocate failure",
        })
    }
}

/// One event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TraceRecord {
    /// When, since the clock started, in nanoseconds. No other record of the same trace has the same time: one that would is put off
    /// until after the last.
    pub nanoseconds: u64,
    /// The block; 0 for a request that was not met.
    pub address: DeviceAddress,
    /// Its bytes.
    pub bytes: u64,
    /// Its stream.
    pub stream: StreamKey,
    /// A number for the thread.
    pub thread: u32,
    /// What it is for.
    pub tag: AllocTag,
    /// What happened.
    pub action: TraceAction,
}

impl TraceRecord {
    /// When, since the clock started.
    pub fn time(&self) -> Duration {
        Duration::from_nanos(self.nanoseconds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_forty_bytes() {
        assert_eq!(size_of::<TraceRecord>(), 40);
    }
}
