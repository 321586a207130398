//! What a recording is of.

use crate::format::{FieldDecoder, FieldEncoder, Malformed};

/// The clock behind the times of a recording, or of one of its devices.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum RecordingClock {
    /// The clock of the host.
    #[default]
    Wall,
    /// The clock of a simulated device.
    Virtual,
}

impl RecordingClock {
    /// Whose clock it is, in words.
    pub fn words(self) -> &'static str {
        match self {
            Self::Wall => "of the host",
            Self::Virtual => "of a simulated machine",
        }
    }

    pub(crate) fn encode(self, to: &mut FieldEncoder) {
        to.byte(u8::from(self == Self::Virtual));
    }

    pub(crate) fn decode(from: &mut FieldDecoder<'_>) -> Result<Self, Malformed> {
        match from.byte()? {
            0 => Ok(Self::Wall),
            1 => Ok(Self::Virtual),
            _ => Err(Malformed("an unknown clock")),
        }
    }
}

/// What a recording is of.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct StartRecord<'a> {
    /// The program.
    pub program: &'a str,
    /// Its number in the operating system.
    pub process: u32,
    /// The clock of the first device. Other devices may have other clocks ([`DeviceRecord::clock_kind`](crate::DeviceRecord::clock_kind)).
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
        self.clock.encode(to);
        to.number(self.unix_ns);
        to.name(self.run);
    }

    pub(crate) fn decode(from: &mut FieldDecoder<'a>) -> Result<Self, Malformed> {
        let (program, process) = (from.name()?, from.small()?);
        let clock = RecordingClock::decode(from)?;
        Ok(Self { program, process, clock, unix_ns: from.number()?, run: from.name()? })
    }
}
