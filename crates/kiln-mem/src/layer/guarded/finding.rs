//! What a guard found.

use std::fmt;

use crate::block::DeviceBlockId;
use crate::tag::AllocTag;

/// Memory that was written although it should not have been.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GuardFinding {
    /// The block, as its owner knows it.
    pub block: DeviceBlockId,
    /// The number of its allocation, counted from 1.
    pub serial: u64,
    /// Its bytes.
    pub bytes: u64,
    /// What it is for.
    pub tag: AllocTag,
    /// Where it was written.
    pub damage: Damage,
}

/// Where memory was written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Damage {
    /// So many bytes before the first.
    Underrun {
        /// How many.
        before: u64,
    },
    /// So many bytes after the end.
    Overrun {
        /// How many; 0 is the byte just after the last.
        past: u64,
    },
    /// Inside, after it was freed.
    UseAfterFree {
        /// How far from its start.
        offset: u64,
    },
}

impl fmt::Display for GuardFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { block, serial, bytes, tag, damage } = self;
        write!(f, "allocation {serial} ({bytes} bytes for {tag}, {block}) was written ")?;
        match damage {
            Damage::Underrun { before } => write!(f, "{before} bytes before its start"),
            Damage::Overrun { past } => write!(f, "{past} bytes past its end"),
            Damage::UseAfterFree { offset } => write!(f, "at offset {offset} after it was freed"),
        }
    }
}
