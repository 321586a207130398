//! Host memory a device can reach.
//!
//! A command never holds a bare host pointer: it names a host block that the driver gave out or registered, so a
//! worker process can map the same bytes and a copy can be checked against the block's length. The bytes live
//! while the block is held, also after the driver was told to forget it.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use crate::concurrent_bytes::SharedBytes;
use crate::handle::HostId;

/// What is done to a range of bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Access {
    /// Looked at.
    Read,
    /// Overwritten; what was there before does not matter.
    Write,
    /// Both.
    ReadWrite,
}

impl Access {
    /// Whether bytes are looked at.
    pub fn reads(self) -> bool {
        self != Self::Write
    }

    /// Whether bytes are changed.
    pub fn writes(self) -> bool {
        self != Self::Read
    }

    /// The access that allows both.
    #[must_use]
    pub fn union(self, other: Self) -> Self {
        if self == other { self } else { Self::ReadWrite }
    }
}

impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::ReadWrite => "read-write",
        })
    }
}

/// Told of every access the host makes through a [`HostBlock`]; a simulator checks them against its own order.
pub trait HostWatch: Send + Sync {
    /// The host is about to access these bytes.
    fn touch(&self, block: HostId, range: Range<u64>, access: Access);
}

/// A block of host memory that commands can name.
#[derive(Clone)]
pub struct HostBlock {
    id: HostId,
    bytes: Arc<SharedBytes>,
    watch: Option<Arc<dyn HostWatch>>,
}

impl HostBlock {
    /// A block as a driver gives it out.
    pub fn new(id: HostId, bytes: Arc<SharedBytes>, watch: Option<Arc<dyn HostWatch>>) -> Self {
        Self { id, bytes, watch }
    }

    /// The name commands use.
    pub fn id(&self) -> HostId {
        self.id
    }

    /// Its length in bytes.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The bytes themselves, past the watch.
    pub fn bytes(&self) -> &Arc<SharedBytes> {
        &self.bytes
    }

    /// Copies bytes out; `false` and nothing done if they lie outside.
    #[must_use]
    pub fn read(&self, offset: usize, into: &mut [u8]) -> bool {
        self.touch(offset, into.len(), Access::Read) && self.bytes.read(offset, into)
    }

    /// Copies bytes in; `false` and nothing done if they lie outside.
    #[must_use]
    pub fn write(&self, offset: usize, from: &[u8]) -> bool {
        self.touch(offset, from.len(), Access::Write) && self.bytes.write(offset, from)
    }

    /// Says that the host is about to access bytes through a plain pointer; `false` if they lie outside.
    #[must_use]
    pub fn touch(&self, offset: usize, len: usize, access: Access) -> bool {
        let inside = offset.checked_add(len).is_some_and(|end| end <= self.bytes.len());
        if let (true, Some(watch)) = (inside && len > 0, &self.watch) {
            watch.touch(self.id, offset as u64..(offset + len) as u64, access);
        }
        inside
    }
}

impl fmt::Debug for HostBlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} bytes", self.id, self.len())
    }
}
