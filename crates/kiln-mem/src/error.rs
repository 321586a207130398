//! Errors of a memory resource.

use std::fmt;

use crate::block::{DeviceBlock, DeviceBlockId, ResourceKey};
use crate::out_of_memory::Exhausted;
use crate::try_reserve::HostOutOfMemory;

/// The answer of a resource.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a resource did not do what was asked. One word long; predicates answer what callers ask.
pub struct Error {
    kind: Box<ErrorKind>,
}

/// The kinds of failure.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ErrorKind {
    /// There is not enough memory, and everything that could be done about it was done.
    #[error(transparent)]
    OutOfMemory(#[from] ExhaustedError),
    /// No block can be like that; nothing was changed.
    #[error(transparent)]
    Refused(#[from] MemoryRefusal),
    /// Memory was written that should not have been.
    #[error("{0}")]
    Corrupt(String),
    /// The host has no memory for what a resource has to write down. Nothing was changed.
    #[error(transparent)]
    HostMemory(#[from] HostOutOfMemory),
    /// What the driver said.
    #[error(transparent)]
    Driver(#[from] kiln_driver::Error),
}

/// [`Exhausted`] as an error.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ExhaustedError(pub Exhausted);

impl fmt::Display for ExhaustedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl std::error::Error for ExhaustedError {}

/// Why a request was turned down. Nothing was changed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MemoryRefusal {
    /// An alignment that no block can have.
    #[error("an alignment of {align} is no power of two up to {most}; ask for one")]
    Alignment {
        /// What was asked for.
        align: u64,
        /// The largest that can be had.
        most: u64,
    },
    /// A size that no block can have.
    #[error("{0} bytes are more than any block can have; ask for less, or for several blocks")]
    Size(u64),
    /// The block belongs to another resource.
    #[error("{block} belongs to {owner}, not to {resource}; give it back where it came from")]
    Foreign {
        /// The block.
        block: DeviceBlockId,
        /// Whose it is.
        owner: ResourceKey,
        /// Who was asked to take it.
        resource: ResourceKey,
    },
    /// The resource does not know the block any more.
    #[error("{block} is not live; it was given back before")]
    Stale {
        /// The block.
        block: DeviceBlockId,
    },
    /// The driver has no addresses for the memory of the device.
    #[error(
        "no addresses are left for a device of {device_bytes} bytes, whose heap needs {needed_bytes} bytes of them in a row ({told}); \
         use fewer devices in this process, or simulated ones with less memory (`DeviceConfig::memory_bytes`)"
    )]
    Addresses {
        /// The least that the heap can do with: twice the memory of the device.
        needed_bytes: u64,
        /// The memory of the device.
        device_bytes: u64,
        /// What the driver said.
        told: String,
    },
    /// The device has none of what the resource needs.
    #[error("{what}; {next}")]
    Unsupported {
        /// What is missing.
        what: String,
        /// What to use instead.
        next: &'static str,
    },
}

/// A block that could not be given back, and why.
#[derive(Debug)]
pub struct FreeError {
    /// The block; its owner still owns it.
    pub block: DeviceBlock,
    /// Why.
    pub error: Error,
}

impl Error {
    /// What went wrong.
    pub fn kind(&self) -> &ErrorKind {
        &self.kind
    }

    /// Whether memory is out. Everything that could be done about it was done.
    pub fn is_oom(&self) -> bool {
        matches!(*self.kind, ErrorKind::OutOfMemory(_))
    }

    /// Whether the host, and not the device, is out of memory.
    pub fn is_host_oom(&self) -> bool {
        matches!(*self.kind, ErrorKind::HostMemory(_))
    }

    /// The explanation, if memory is out.
    pub fn exhausted(&self) -> Option<&Exhausted> {
        match &*self.kind {
            ErrorKind::OutOfMemory(exhausted) => Some(&exhausted.0),
            _ => None,
        }
    }

    /// The explanation, for a layer that knows more.
    pub fn exhausted_mut(&mut self) -> Option<&mut Exhausted> {
        match &mut *self.kind {
            ErrorKind::OutOfMemory(exhausted) => Some(&mut exhausted.0),
            _ => None,
        }
    }

    /// The refusal, if it is one.
    pub fn refusal(&self) -> Option<&MemoryRefusal> {
        match &*self.kind {
            ErrorKind::Refused(refusal) => Some(refusal),
            _ => None,
        }
    }

    /// The driver's error, if it is one.
    pub fn driver(&self) -> Option<&kiln_driver::Error> {
        match &*self.kind {
            ErrorKind::Driver(error) => Some(error),
            _ => None,
        }
    }

    /// Whether the block belongs to another resource.
    pub fn is_foreign(&self) -> bool {
        matches!(self.refusal(), Some(MemoryRefusal::Foreign { .. }))
    }

    /// Whether the block was given back before.
    pub fn is_stale(&self) -> bool {
        matches!(self.refusal(), Some(MemoryRefusal::Stale { .. }))
    }

    /// Whether memory was overwritten.
    pub fn is_corrupt(&self) -> bool {
        matches!(*self.kind, ErrorKind::Corrupt(_))
    }

    /// Whether the device is lost.
    pub fn is_sticky(&self) -> bool {
        self.driver().is_some_and(kiln_driver::Error::is_sticky)
    }

    /// Whether the same request may succeed later without being changed.
    pub fn is_retryable(&self) -> bool {
        self.is_oom() || self.is_host_oom() || self.driver().is_some_and(kiln_driver::Error::is_retryable)
    }

    /// Memory was overwritten.
    pub fn corrupt(what: impl Into<String>) -> Self {
        Self { kind: Box::new(ErrorKind::Corrupt(what.into())) }
    }
}

impl<T: Into<ErrorKind>> From<T> for Error {
    fn from(kind: T) -> Self {
        Self { kind: Box::new(kind.into()) }
    }
}

impl From<Exhausted> for ErrorKind {
    fn from(exhausted: Exhausted) -> Self {
        Self::OutOfMemory(ExhaustedError(exhausted))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.kind, f)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.driver().map(|error| error as _)
    }
}

impl fmt::Display for FreeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} was not freed: {}", self.block.id(), self.error)
    }
}

impl std::error::Error for FreeError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.error)
    }
}

impl FreeError {
    /// A block that could not be given back.
    pub fn new(block: DeviceBlock, error: impl Into<Error>) -> Self {
        Self { block, error: error.into() }
    }

    /// The block belongs to another resource than the one that was asked to take it.
    pub fn foreign(block: DeviceBlock, resource: ResourceKey) -> Self {
        let refusal = MemoryRefusal::Foreign { block: block.id(), owner: block.owner(), resource };
        Self::new(block, ErrorKind::from(refusal))
    }

    /// The block is not live.
    pub fn stale(block: DeviceBlock) -> Self {
        let refusal = MemoryRefusal::Stale { block: block.id() };
        Self::new(block, ErrorKind::from(refusal))
    }
}
