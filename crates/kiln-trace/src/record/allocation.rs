//! Memory that was given out and given back.

use super::TraceLine;
use crate::format::{FieldDecoder, FieldEncoder, Malformed};

/// A block that was given out.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct AllocationRecord<'a> {
    /// The device whose memory it is.
    pub device: u32,
    /// Its number; no other block has it.
    pub block: u64,
    /// Where it begins in the device's memory; 0 if that is not known.
    pub address: u64,
    /// Its size.
    pub bytes: u64,
    /// Its tag; empty if it has none.
    pub tag: &'a str,
    /// Which line asked for it.
    pub line: Option<TraceLine<'a>>,
    /// When.
    pub time_ns: u64,
}

/// A block that was given back.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FreeRecord<'a> {
    /// The device whose memory it is.
    pub device: u32,
    /// Its number.
    pub block: u64,
    /// Its size.
    pub bytes: u64,
    /// Its tag; empty if it has none.
    pub tag: &'a str,
    /// When.
    pub time_ns: u64,
}

impl<'a> AllocationRecord<'a> {
    pub(crate) fn encode(&self, to: &mut FieldEncoder) {
        to.number(self.device.into());
        to.number(self.block);
        to.number(self.address);
        to.number(self.bytes);
        to.name(self.tag);
        TraceLine::encode(self.line, to);
        to.time(self.time_ns);
    }

    pub(crate) fn decode(from: &mut FieldDecoder<'a>) -> Result<Self, Malformed> {
        let (device, block) = (from.small()?, from.number()?);
        let (address, bytes) = (from.number()?, from.number()?);
        let (tag, line) = (from.name()?, TraceLine::decode(from)?);
        Ok(Self { device, block, address, bytes, tag, line, time_ns: from.time()? })
    }
}

impl<'a> FreeRecord<'a> {
    pub(crate) fn encode(&self, to: &mut FieldEncoder) {
        to.number(self.device.into());
        to.number(self.block);
        to.number(self.bytes);
        to.name(self.tag);
        to.time(self.time_ns);
    }

    pub(crate) fn decode(from: &mut FieldDecoder<'a>) -> Result<Self, Malformed> {
        let (device, block, bytes) = (from.small()?, from.number()?, from.number()?);
        Ok(Self { device, block, bytes, tag: from.name()?, time_ns: from.time()? })
    }
}
