//! What is asked for.

use crate::stamp::StreamRef;
use crate::tag::AllocTag;

/// A request for memory.
///
/// ```no_run
/// # fn stream() -> kiln_mem::StreamRef { unimplemented!() }
/// use kiln_mem::{AllocTag, Request};
///
/// let request = Request::new(4096, stream()).align(4096).tag(AllocTag::new("scratch")?);
/// # Ok::<(), kiln_mem::TooManyTags>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Request {
    /// How many bytes; zero is a valid block that takes no memory.
    pub bytes: u64,
    /// The first address is a multiple of this; a power of two.
    pub align: u64,
    /// The stream the memory is for: work submitted to it after the call may use the block.
    pub stream: StreamRef,
    /// What it is for.
    pub tag: AllocTag,
}

impl Request {
    /// The alignment every block has without asking.
    pub const MIN_ALIGN: u64 = 256;
    /// More than this is refused: no device has memory to align to it.
    pub const MAX_ALIGN: u64 = 1 << 32;

    /// A request for bytes on a stream, with the usual alignment and no tag.
    pub fn new(bytes: u64, stream: StreamRef) -> Self {
        Self { bytes, align: Self::MIN_ALIGN, stream, tag: AllocTag::default() }
    }

    /// The same with another alignment.
    #[must_use]
    pub fn align(self, align: u64) -> Self {
        Self { align, ..self }
    }

    /// The same with a tag.
    #[must_use]
    pub fn tag(self, tag: AllocTag) -> Self {
        Self { tag, ..self }
    }

    /// The same for another number of bytes.
    #[must_use]
    pub fn bytes(self, bytes: u64) -> Self {
        Self { bytes, ..self }
    }
}
