//! How the devices of a group reach each other.

use std::fmt;
use std::sync::Arc;

/// How a copy goes from one device to another.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PeerAccess {
    /// Both are the same device.
    SameDevice,
    /// The driver copies from device to device, in the order of their streams.
    Direct,
    /// Through host memory; the calling thread waits for the first half.
    ThroughHost {
        /// Why it is not direct.
        why: Arc<str>,
    },
}

impl PeerAccess {
    /// Whether bytes go from device to device without a wait on the host.
    pub fn is_direct(&self) -> bool {
        matches!(self, Self::Direct | Self::SameDevice)
    }
}

impl fmt::Display for PeerAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SameDevice => f.write_str("same device"),
            Self::Direct => f.write_str("direct"),
            Self::ThroughHost { why } => write!(f, "through the host: {why}"),
        }
    }
}

/// [`PeerAccess`] for every two devices of a group. Its `Display` is a table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PeerMatrix {
    len: usize,
    /// By rows: from each device to each.
    entries: Vec<PeerAccess>,
}

impl PeerMatrix {
    pub(crate) fn new(len: usize, entries: Vec<PeerAccess>) -> Self {
        Self { len, entries }
    }

    /// The devices.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none, which no group has.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// How a copy goes; none if one of the devices does not exist.
    pub fn access(&self, from: usize, to: usize) -> Option<&PeerAccess> {
        if to < self.len { self.entries.get(from.checked_mul(self.len)?.checked_add(to)?) } else { None }
    }
}

impl fmt::Display for PeerMatrix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "from\\to")?;
        (0..self.len).try_for_each(|to| write!(f, " {to:>6}"))?;
        for from in 0..self.len {
            write!(f, "\n{from:>7}")?;
            for to in 0..self.len {
                let word = match self.access(from, to) {
                    Some(PeerAccess::SameDevice) | None => "-",
                    Some(PeerAccess::Direct) => "direct",
                    Some(PeerAccess::ThroughHost { .. }) => "host",
                };
                write!(f, " {word:>6}")?;
            }
        }
        Ok(())
    }
}
