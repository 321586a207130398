//! A mistake that the checks of a device found.

use super::{TraceLine, TraceStamp};
use crate::format::{FieldDecoder, FieldEncoder, Malformed};

/// A mistake that the checks of a device found in a kernel, a copy or the order of calls. The device goes on; a mistake that loses it is a
/// [fault](super::FaultRecord).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FindingRecord<'a> {
    /// The device.
    pub device: u32,
    /// Which rule was broken, in a few words, such as `race`.
    pub rule: &'a str,
    /// The kernel that broke it; empty if none did, or it is not known.
    pub kernel: &'a str,
    /// The line of the kernel's source.
    pub line: Option<TraceLine<'a>>,
    /// All that is known, in one line.
    pub message: &'a str,
    /// The submission it belongs to, if that is known.
    pub stamp: Option<TraceStamp>,
    /// Which line of the program submitted that.
    pub submitted: Option<TraceLine<'a>>,
    /// When the work ended, or else when it was noticed.
    pub time_ns: u64,
    /// How many more were found that are not in the recording by themselves; then nothing but device and time is said. 0 for a finding.
    pub more: u64,
}

impl<'a> FindingRecord<'a> {
    pub(crate) fn encode(&self, to: &mut FieldEncoder) {
        to.number(self.device.into());
        to.name(self.rule);
        to.name(self.kernel);
        TraceLine::encode(self.line, to);
        to.name(self.message);
        to.byte(u8::from(self.stamp.is_some()));
        if let Some(stamp) = self.stamp {
            stamp.encode(to);
        }
        TraceLine::encode(self.submitted, to);
        to.time(self.time_ns);
        to.number(self.more);
    }

    pub(crate) fn decode(from: &mut FieldDecoder<'a>) -> Result<Self, Malformed> {
        let (device, rule, kernel) = (from.small()?, from.name()?, from.name()?);
        let (line, message) = (TraceLine::decode(from)?, from.name()?);
        let stamp = match from.byte()? {
            0 => None,
            1 => Some(TraceStamp::decode(from)?),
            _ => return Err(Malformed("a finding that is cut off")),
        };
        let (submitted, time_ns) = (TraceLine::decode(from)?, from.time()?);
        Ok(Self { device, rule, kernel, line, message, stamp, submitted, time_ns, more: from.number()? })
    }
}
