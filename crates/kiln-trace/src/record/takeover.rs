//! The steps from a lost worker to a new one.

use super::TimeSpan;
use crate::format::{FieldDecoder, FieldEncoder, Malformed};

/// A step.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "snake_case"))]
pub enum TakeoverPhase {
    /// From the loss to the new worker.
    #[default]
    Lost,
    /// Memory, code and streams are made again.
    Rebuilding,
    /// Unfinished work is submitted again.
    Resubmitting,
}

/// A device that is being brought back.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TakeoverRecord {
    /// The device.
    pub device: u32,
    /// The step.
    pub phase: TakeoverPhase,
    /// From when to when.
    pub span: TimeSpan,
}

const PHASES: [TakeoverPhase; 3] =
    [TakeoverPhase::Lost, TakeoverPhase::Rebuilding, TakeoverPhase::Resubmitting];

impl TakeoverPhase {
    /// What happens, in one word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Lost => "lost",
            Self::Rebuilding => "rebuilding",
            Self::Resubmitting => "resubmitting",
        }
    }
}

impl TakeoverRecord {
    pub(crate) fn encode(&self, to: &mut FieldEncoder) {
        to.number(self.device.into());
        to.byte(PHASES.iter().position(|phase| *phase == self.phase).unwrap_or_default() as u8);
        self.span.encode(to);
    }

    pub(crate) fn decode(from: &mut FieldDecoder<'_>) -> Result<Self, Malformed> {
        let device = from.small()?;
        let unknown = Malformed("an unknown step of a takeover");
        let phase = *PHASES.get(usize::from(from.byte()?)).ok_or(unknown)?;
        Ok(Self { device, phase, span: TimeSpan::decode(from)? })
    }
}
