//! What a recording is of.

use crate::format::{FieldDecoder, FieldEncoder, Malformed};

/// The clock behind the times of a recording.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum RecordingClock {
    /// The clock of the host.
    #[default]
    Wall,
    /// The clock of a simulated device.
    Virtual,
}

/// What a recording is of.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct StartRecord<'a> {
    /// The program.
    pub program: &'a str,
    /// Its number in the operating system.
    pub process: u32,
    /// The clock behind all times.
    pub clock: RecordingClock,
    /// When the recording began, in nanoseconds since 1970; 0 if that is unknown or means nothing.
    pub unix_ns: u64,
    /// The run that the recording belongs to, the same for all processes of one job; empty if what started the program gave it none.
    pub run: &'a str,
}

impl<'a> StartRecord<'a> {
    pub(crate) fn encode(&self, to: &mut FieldEncoder) {
        to.name(self.program);
        to.number(self.process.into());
        to.byte(u8::from(self.clock == RecordingClock::Virtual));
        to.number(self.unix_ns);
        to.name(self.run);
    }

    pub(crate) fn decode(from: &mut FieldDecoder<'a>) -> Result<Self, Malformed> {
        let (program, process) = (from.name()?, from.small()?);
        let clock = match from.byte()? {
            0 => RecordingClock::Wall,
            1 => RecordingClock::Virtual,
            _ => return Err(Malformed("an unknown clock")),
        };
        Ok(Self { program, process, clock, unix_ns: from.number()?, run: from.name()? })
    }
}
