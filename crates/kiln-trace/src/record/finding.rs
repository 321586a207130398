//! A mistake that the checks of a device found.

use super::{TraceLine, TraceStamp};
use crate::format::{FieldDecoder, FieldEncoder, Malformed};
use crate::plain_text::text_in_one_line;

/// Bytes of what is said of a finding: names that are longer than a little more are cut.
const MESSAGE_BYTES: usize = 1000;
const LAST_BYTES: usize = 240;

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

/// What is said of a finding, in one line and as far as a recording has room: its beginning and its end, which says how to see it again.
pub fn finding_message(text: &str) -> String {
    let said = text_in_one_line(text);
    if said.len() <= MESSAGE_BYTES {
        return said;
    }
    let boundary = |mut at: usize| {
        while !said.is_char_boundary(at) {
            at -= 1;
        }
        at
    };
    let (first, last) = (boundary(MESSAGE_BYTES - LAST_BYTES), boundary(said.len() - LAST_BYTES));
    format!("{} … {}", said.get(..first).unwrap_or_default(), said.get(last..).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_keeps_its_end_and_a_short_one_is_whole() {
        assert_eq!(finding_message("two\n  lines"), "two; lines");
        let text = format!("begin {} Repeat with seed 7.", "é".repeat(3000));
        let short = finding_message(&text);
        assert!(short.starts_with("begin é") && short.ends_with("é Repeat with seed 7."), "{short}");
        assert!(short.len() <= crate::MAX_NAME_BYTES, "{}", short.len());
    }
}
