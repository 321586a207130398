//! Events that a recording misses.

use std::fmt::{self, Display, Formatter};

use super::quantity::{Bytes, Time};
use crate::record::{DropCause, DroppedRecord};

/// Events that a recording misses, and why. Its `Display` is a sentence.
///
/// ```
/// use kiln_trace::{DropCause, DroppedRecord, MissingEvents};
///
/// let mut missing = MissingEvents::default();
/// missing.add(&DroppedRecord { events: 3, cause: DropCause::DiskFull, at_byte: 4096, time_ns: 5_000 });
/// let said = "3 events are missing: the disk was full when the file had 4.0 KiB (4096 bytes), 5.0 us after the beginning.";
/// assert_eq!(missing.to_string(), said);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct MissingEvents {
    events: u64,
    /// The first time that the disk was the reason, or else the first.
    first: Option<DroppedRecord>,
}

impl MissingEvents {
    /// Takes what the recording says.
    pub fn add(&mut self, dropped: &DroppedRecord) {
        self.events = self.events.saturating_add(dropped.events);
        let is_disk = |known: &DroppedRecord| known.cause != DropCause::TooFast;
        if self.first.as_ref().is_none_or(|first| !is_disk(first) && is_disk(dropped)) {
            self.first = Some(*dropped);
        }
    }

    /// How many.
    pub fn events(&self) -> u64 {
        self.events
    }
}

impl Display for MissingEvents {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Some(first) = self.first else { return write!(f, "No event is missing.") };
        let events =
            if self.events == 1 { "1 event is".to_owned() } else { format!("{} events are", self.events) };
        write!(f, "{events} missing: {}", first.cause.words())?;
        if first.cause != DropCause::TooFast {
            let (bytes, after) = (Bytes(first.at_byte), Time(first.time_ns));
            write!(f, " when the file had {bytes}")?;
            if first.at_byte >= 1024 {
                write!(f, " ({} bytes)", first.at_byte)?;
            }
            write!(f, ", {after} after the beginning")?;
        }
        write!(f, ".")
    }
}
