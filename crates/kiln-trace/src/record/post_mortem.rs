//! What is known of the loss of a device.

use crate::format::{FieldDecoder, FieldEncoder, Malformed};

/// A line of the post-mortem of a device that was lost: the cause, what was under way, which blocks were kept or lost, and what it took. The lines of
/// one post-mortem come one after the other.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PostMortemRecord<'a> {
    /// The device.
    pub device: u32,
    /// Which loss of the device it is about: the generation of the device that ended, from 0.
    pub generation: u32,
    /// The line, with the spaces it begins with.
    pub line: &'a str,
    /// When it was written.
    pub time_ns: u64,
}

impl<'a> PostMortemRecord<'a> {
    pub(crate) fn encode(&self, to: &mut FieldEncoder) {
        to.number(self.device.into());
        to.number(self.generation.into());
        to.name(self.line);
        to.time(self.time_ns);
    }

    pub(crate) fn decode(from: &mut FieldDecoder<'a>) -> Result<Self, Malformed> {
        let (device, generation, line) = (from.small()?, from.small()?, from.name()?);
        Ok(Self { device, generation, line, time_ns: from.time()? })
    }
}
