//! Events that are missing from a recording.

use crate::format::{FieldDecoder, FieldEncoder, Malformed};

/// Why events were not written.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub enum DropCause {
    /// They came faster than they could be written.
    #[default]
    TooFast,
    /// The disk was full.
    DiskFull,
    /// The disk refused them for another reason.
    DiskRefused,
    /// The user may store no more on the disk.
    QuotaExceeded,
    /// The file was as large as the process may make one, or as the file system can.
    FileTooLarge,
}

/// Events that were not written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DroppedRecord {
    /// How many.
    pub events: u64,
    /// Why, or why most of them.
    pub cause: DropCause,
    /// How many bytes the file had when the disk took no more; 0 where it was not the disk.
    pub at_byte: u64,
    /// When that was noticed.
    pub time_ns: u64,
}

const CAUSES: [DropCause; 5] = [
    DropCause::TooFast,
    DropCause::DiskFull,
    DropCause::DiskRefused,
    DropCause::QuotaExceeded,
    DropCause::FileTooLarge,
];

impl DropCause {
    /// In words, behind how many events are missing.
    pub fn words(self) -> &'static str {
        match self {
            Self::TooFast => "they came faster than they could be written",
            Self::DiskFull => "the disk was full",
            Self::DiskRefused => "the disk refused them",
            Self::QuotaExceeded => "the quota of the disk was used up",
            Self::FileTooLarge => "the file reached the largest size that the process may write (ulimit -f)",
        }
    }
}

impl DroppedRecord {
    pub(crate) fn encode(&self, to: &mut FieldEncoder) {
        to.number(self.events);
        to.byte(CAUSES.iter().position(|cause| *cause == self.cause).unwrap_or_default() as u8);
        to.number(self.at_byte);
        to.time(self.time_ns);
    }

    pub(crate) fn decode(from: &mut FieldDecoder<'_>) -> Result<Self, Malformed> {
        let events = from.number()?;
        let unknown = Malformed("an unknown reason why events are missing");
        let cause = *CAUSES.get(usize::from(from.byte()?)).ok_or(unknown)?;
        Ok(Self { events, cause, at_byte: from.number()?, time_ns: from.time()? })
    }
}
